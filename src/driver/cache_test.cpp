// The cache of code: what is found, what is not, and what goes.
#include "driver/cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "driver/build.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace selkie::driver {
namespace {

namespace fs = std::filesystem;

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::path(testing::TempDir()) / fmt::format("selkie_cache_{}", getpid())).string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> list;
    if (fs::exists(folder_))
      for (const auto& entry : fs::directory_iterator(folder_)) list.push_back(entry.path());
    return list;
  }
  // As if all entries had been used so much earlier.
  void age(std::chrono::seconds by) const {
    for (const fs::path& file : files()) fs::last_write_time(file, fs::last_write_time(file) - by);
  }

  std::string folder_;
};

program::Image image_of(size_t bytes, int value) {
  return {.isa = "any", .code = std::vector<std::byte>(bytes, std::byte(value)), .entries = {{"k0", 0}}};
}

TEST_F(Cache, FindsWhatWasStoredAndNothingElse) {
  CodeCache cache(folder_, 1 << 20);
  EXPECT_FALSE(cache.find("a"));
  cache.store("a", image_of(100, 1));
  ASSERT_TRUE(cache.find("a"));
  EXPECT_EQ(cache.find("a")->code, image_of(100, 1).code);
  EXPECT_EQ(cache.find("a")->entries, image_of(100, 1).entries);
  EXPECT_FALSE(cache.find("b"));
  cache.store("a", image_of(50, 2));
  EXPECT_EQ(cache.find("a")->code.size(), 50u);
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(Cache, AnEntryOfAnotherKeyUnderTheSameNameIsNone) {
  CodeCache cache(folder_, 1 << 20);
  cache.store("a", image_of(100, 1));
  fs::path a = files()[0];
  cache.store("b", image_of(100, 2));
  for (const fs::path& file : files())
    if (file != a) fs::rename(file, a);
  EXPECT_FALSE(cache.find("a"));
}

TEST_F(Cache, DamagedEntriesAreNoneAndAreReplaced) {
  CodeCache cache(folder_, 1 << 20);
  cache.store("a", image_of(100, 1));
  fs::path file = files()[0];
  std::string whole;
  {
    std::ifstream in(file, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  auto write = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    write(whole.substr(0, i));
    ASSERT_FALSE(cache.find("a")) << i;
    std::string changed = whole;
    changed[i] ^= 1;
    write(changed);
    ASSERT_FALSE(cache.find("a")) << i;
  }
  cache.store("a", image_of(100, 1));
  EXPECT_TRUE(cache.find("a"));
}

TEST_F(Cache, WhatWasNotUsedForTheLongestTimeGoesFirst) {
  CodeCache cache(folder_, 3500);
  for (const char* key : {"a", "b", "c"}) {
    cache.store(key, image_of(1000, 1));
    age(std::chrono::seconds(10));
  }
  EXPECT_TRUE(cache.find("a"));  // and is used by that
  cache.store("d", image_of(1000, 1));
  EXPECT_TRUE(cache.find("a"));
  EXPECT_FALSE(cache.find("b"));
  EXPECT_TRUE(cache.find("c"));
  EXPECT_TRUE(cache.find("d"));
  cache.store("e", image_of(5000, 1));  // more than there may be
  EXPECT_FALSE(cache.find("e"));
  EXPECT_EQ(files().size(), 3u);
}

TEST_F(Cache, WhatAnEndedProcessLeftGoesToo) {
  CodeCache cache(folder_, 2500);
  cache.store("a", image_of(1000, 1));
  std::ofstream(fs::path(folder_) / "0.code.1.1.partial") << std::string(1000, 'x');
  std::ofstream(fs::path(folder_) / "not ours") << std::string(9000, 'x');
  age(std::chrono::seconds(10));
  cache.find("a");
  cache.store("b", image_of(1000, 1));
  EXPECT_TRUE(cache.find("a"));
  EXPECT_TRUE(cache.find("b"));
  EXPECT_FALSE(fs::exists(fs::path(folder_) / "0.code.1.1.partial"));
  EXPECT_TRUE(fs::exists(fs::path(folder_) / "not ours"));
}

TEST_F(Cache, AFolderThatCannotBeIsNoError) {
  std::ofstream(folder_) << "a file";
  CodeCache cache(folder_, 1 << 20);
  EXPECT_NO_THROW(cache.store("a", image_of(10, 1)));
  EXPECT_FALSE(cache.find("a"));
}

TEST_F(Cache, ThreadsThatShareAFolderFindWholeEntries) {
  std::atomic<int> found = 0;
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        CodeCache cache(folder_, 40'000);  // room for some of them
        for (int i = 0; i < 200; ++i) {
          std::string key = std::to_string(i % 7);
          cache.store(key, image_of(10'000, i % 7));
          if (auto image = cache.find(key)) {
            ++found;
            wrong += image->code != image_of(10'000, i % 7).code;
          }
        }
      });
  }
  EXPECT_GT(found, 100);
  EXPECT_EQ(wrong, 0);
}

Built build_text(const std::string& text, const std::string& folder) {
  return build(ir::parse(text, ops::op_set(), "test"), {.cache_folder = folder});
}

TEST_F(Cache, AModelIsCompiledOnce) {
  const char* text = "func @main(%x: f32[N]) -> (y: f32[N]) {\n  %y = exp(%x)\n  return %y\n}\n";
  const char* other = "func @main(%x: f32[N]) -> (y: f32[N]) {\n  %y = log(%x)\n  return %y\n}\n";
  Built first = build_text(text, folder_);
  Built second = build_text(text, folder_);
  Built third = build_text(other, folder_);
  EXPECT_FALSE(first.code_is_cached);
  EXPECT_TRUE(second.code_is_cached);
  EXPECT_FALSE(third.code_is_cached);
  EXPECT_FALSE(build_text(text, "").code_is_cached);
  EXPECT_EQ(first.image.code, second.image.code);
  std::vector<float> x{0, 1, 2};
  std::vector<HostValue> inputs{Tensor::from<float>(DType::f32, {3}, x)};
  Tensor a = runtime::Context(first.executable).run(inputs)[0].tensor();
  Tensor b = runtime::Context(second.executable).run(inputs)[0].tensor();
  EXPECT_TRUE(std::equal(a.bytes(), a.bytes() + a.byte_size(), b.bytes()));
}

}  // namespace
}  // namespace selkie::driver
