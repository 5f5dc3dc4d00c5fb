// Where constants that kernels read as they are come to lie.
#include "compiler/packing.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace selkie::compiler {
namespace {

constexpr size_t file_bytes = size_t{1} << 20;

// Bytes 0, 1, …, 255, 0, … of a file.
class StoredConstants : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / "selkie_packing_test.bin";
    std::string bytes(file_bytes, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
    std::ofstream(path_, std::ios::binary) << bytes;
    file_ = MappedFile::open(path_.string());
  }
  void TearDown() override { std::filesystem::remove(path_); }

  ir::Constant constant(size_t offset, int64_t floats) const {
    ir::Constant out;
    out.dims = {floats};
    out.raw = file_->bytes().subspan(offset, static_cast<size_t>(floats) * sizeof(float));
    out.file = file_;
    return out;
  }
  Tensor stored(const ir::Constant& constant) {
    Tensor tensor = stored_constant(constant, slab_, packings_);
    packings_.run(1);
    EXPECT_EQ(std::memcmp(tensor.bytes(), constant.raw.data(), constant.raw.size()), 0);
    return tensor;
  }
  bool is_in_file(const Tensor& tensor) const {
    const std::byte* begin = file_->bytes().data();
    return tensor.bytes() >= begin && tensor.bytes() < begin + file_->bytes().size();
  }

  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  Slab slab_;
  Packings packings_;
};

TEST_F(StoredConstants, LargeOnesStayInTheirFile) { EXPECT_TRUE(is_in_file(stored(constant(4096, 1 << 16)))); }

TEST_F(StoredConstants, SmallOnesLeaveIt) { EXPECT_FALSE(is_in_file(stored(constant(4096, 100)))); }

TEST_F(StoredConstants, ThoseThatLieAsNoFloatsCanLeaveIt) { EXPECT_FALSE(is_in_file(stored(constant(4097, 1 << 16)))); }

#ifdef __linux__
// Kilobytes of the mapped file that are in memory.
size_t resident(const std::filesystem::path& path) {
  std::ifstream maps("/proc/self/smaps");
  bool is_ours = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(".bin")) is_ours = line.ends_with(path.string());
    if (is_ours && line.starts_with("Rss:")) return std::stoul(line.substr(4));
  }
  return 0;
}

TEST_F(StoredConstants, NothingOfTheFileStaysInMemoryForThoseThatLeave) {
  std::vector<ir::Constant> constants;
  for (size_t at = 0; at + 4096 <= file_bytes; at += 4096) constants.push_back(constant(at, 100));
  std::vector<Tensor> tensors;
  for (const ir::Constant& c : constants) tensors.push_back(stored_constant(c, slab_, packings_));
  packings_.run(1);
  EXPECT_LE(resident(path_), 64U);
}
#endif

TEST_F(StoredConstants, ThoseInMemoryAreNotCopied) {
  ir::Constant constant;
  constant.dims = {3};
  constant.in_memory = Tensor(DType::f32, {3});
  EXPECT_EQ(stored_constant(constant, slab_, packings_).bytes(), constant.in_memory->bytes());
}

}  // namespace
}  // namespace selkie::compiler
