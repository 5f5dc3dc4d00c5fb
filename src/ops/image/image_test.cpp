// Images of one picture in every format agree, and broken ones do no harm.
#include "ops/image/image.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

namespace selkie::ops::image {
namespace {

constexpr std::string_view formats[] = {"bmp", "jp2", "jpeg", "png", "pnm", "tiff", "webp"};

std::vector<uint8_t> read(std::string_view format) {
  std::ifstream in(fmt::format("{}/tests/fail/images/image.{}", SELKIE_SOURCE_DIR, format), std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  std::string bytes = text.str();
  return {bytes.begin(), bytes.end()};
}

// Decodes, or does not, or is a user error; anything else ends the test.
bool decodes(Bytes bytes) {
  try {
    std::optional<Tensor> image = decode(bytes);
    if (image) EXPECT_EQ(image->dim(2), 3);
    return image.has_value();
  } catch (const Error&) {
    return false;
  }
}

TEST(Image, EveryFormatGivesThePicture) {
  Tensor picture = *decode(read("png"));
  ASSERT_EQ(to_string(picture.dims()), "[32, 32, 3]");
  for (std::string_view format : formats) {
    std::optional<Tensor> image = decode(read(format));
    ASSERT_TRUE(image) << format;
    ASSERT_EQ(image->dims(), picture.dims()) << format;
    bool lossy = format == "jpeg" || format == "webp";  // the picture is noise, which these formats blur
    double difference = 0;
    for (int64_t i = 0; i < picture.count(); ++i)
      difference += std::abs(image->data<uint8_t>()[i] - picture.data<uint8_t>()[i]);
    EXPECT_LE(difference / static_cast<double>(picture.count()), lossy ? 25 : 0) << format;
  }
}

TEST(Image, EveryTruncationIsRefusedOrDecoded) {
  for (std::string_view format : formats) {
    std::vector<uint8_t> bytes = read(format);
    for (size_t size = 0; size < bytes.size(); size += size < 256 ? 1 : 7) {
      std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      decodes(cut);
    }
    EXPECT_FALSE(decodes(Bytes(bytes).first(20))) << format;
  }
}

TEST(Image, RandomMutationsDoNoHarm) {
  MemoryBudget::Scope scope(std::make_shared<MemoryBudget>(int64_t{1} << 27));
  const char* given = std::getenv("SELKIE_SEED");
  for (uint64_t seed :
       {uint64_t{1}, given ? uint64_t{std::strtoull(given, nullptr, 10)} : uint64_t{std::random_device{}()}}) {
    fmt::print("[   SEED   ] SELKIE_SEED={}\n", seed);
    std::mt19937_64 random(seed);
    for (std::string_view format : formats) {
      std::vector<uint8_t> original = read(format);
      for (int i = 0; i < 300; ++i) {
        std::vector<uint8_t> bytes = original;
        // Headers decide most, so half of the edits are in the first bytes.
        for (uint64_t edits = 1 + random() % 4; edits > 0; --edits)
          bytes[random() % (random() % 2 ? bytes.size() : 64)] = static_cast<uint8_t>(random());
        decodes(bytes);
      }
    }
  }
}

// Rows go up, are padded to 4 bytes, and name colours of the palette by 4 bits each.
TEST(Image, BitmapsWithAPaletteAndRuns) {
  std::vector<uint8_t> header{'B', 'M', 0, 0, 0, 0, 0, 0, 0, 0, 62, 0, 0, 0, 40,
                              0,   0,   0, 3, 0, 0, 0, 2, 0, 0, 0,  1, 0, 4, 0};
  header.resize(54);
  header[46] = 2;  // colours
  for (uint8_t c : {10, 20, 30, 0, 1, 2, 3, 0}) header.push_back(c);
  std::vector<uint8_t> plain = header;
  for (uint8_t c : {0x01, 0x00, 0, 0, 0x11, 0x10, 0, 0}) plain.push_back(c);
  std::vector<uint8_t> runs = header;
  runs[30] = 2;
  for (uint8_t c : {3, 0x01, 0, 0, 3, 0x11, 0, 1}) runs.push_back(c);
  auto first_channel = [](const std::vector<uint8_t>& bytes) {
    std::vector<int> out;
    std::optional<Tensor> image = decode(bytes);
    for (int64_t i = 0; image && i < image->count(); i += 3) out.push_back(image->data<uint8_t>()[i]);
    return out;
  };
  EXPECT_EQ(first_channel(plain), (std::vector<int>{3, 3, 3, 30, 3, 30}));
  EXPECT_EQ(first_channel(runs), (std::vector<int>{3, 3, 3, 30, 3, 30}));
}

TEST(Image, PortableMaps) {
  auto pixels = [](std::string_view text) {
    std::vector<uint8_t> bytes(text.begin(), text.end());
    std::optional<Tensor> image = decode(bytes);
    return image ? std::vector<int>(image->values<uint8_t>().begin(), image->values<uint8_t>().end())
                 : std::vector<int>{-1};
  };
  EXPECT_EQ(pixels("P1 # a comment\n2 1\n10"), (std::vector<int>{0, 0, 0, 255, 255, 255}));
  EXPECT_EQ(pixels(std::string_view("P4 2 1\n\x80", 8)), (std::vector<int>{0, 0, 0, 255, 255, 255}));
  EXPECT_EQ(pixels("P3 1 1 15 0 15 5"), (std::vector<int>{0, 255, 85}));
  EXPECT_EQ(pixels(std::string_view("P5 1 1 65535\n\x80\x00", 15)), (std::vector<int>{128, 128, 128}));
  for (std::string_view bad : {"P6", "P6 1", "P6 1 1 0\n123", "P6 1 1 70000\n123456", "P2 1 1 9 10", "P6 0 1 255\n",
                               "P1 1 1 2", "P3 99999999999 1 255 1"})
    EXPECT_EQ(pixels(bad), std::vector<int>{-1}) << bad;
}

}  // namespace
}  // namespace selkie::ops::image
