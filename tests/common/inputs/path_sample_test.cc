#include "common/inputs/path_sample.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/checkpoint/checkpoint.h"
#include "common/weights/weights_folder.h"
#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

class PathSampleTest : public ::testing::Test {
 protected:
  PathSampleTest() {
    for (const TempFolder* machine : {&here_, &there_}) {
      machine->Write("data/large.bin", std::string(2 * static_cast<size_t>(kCheckpointBlockBytes) + 7, 'x'));
      machine->Write("data/part/small.txt", "small");
      machine->Write("data/part/empty.txt", "");
    }
  }
  // All blocks, one after the other.
  PathSample Sample(const std::string& path, int blocks) {
    uint64_t next = 0;
    return SamplePath(path, blocks, [&](uint64_t below) { return next++ % below; }).value();
  }
  Sampled Compare(const std::string& path, const PathSample& sample) {
    const auto compared = CompareWithSample(path, sample, OpenAnywhere);
    EXPECT_TRUE(compared.ok()) << compared.status();
    return compared.value_or(Sampled::kNotLooked);
  }
  const TempFolder here_, there_;
};

TEST_F(PathSampleTest, TheSameIsTheSame) {
  const PathSample sample = Sample(here_ / "data", 4);
  EXPECT_EQ(sample.files, 3);
  EXPECT_EQ(sample.bytes, 2 * kCheckpointBlockBytes + 7 + 5);
  ASSERT_EQ(sample.blocks.size(), 4u);
  EXPECT_EQ(sample.blocks[2].file, "large.bin");
  EXPECT_EQ(sample.blocks[2].block, 2);
  EXPECT_EQ(sample.blocks[3].file, "part/small.txt");
  EXPECT_EQ(Compare(there_ / "data", sample), Sampled::kSame);
  EXPECT_EQ(Compare(there_ / "data/large.bin", Sample(here_ / "data/large.bin", 8)), Sampled::kSame) << "a file";
  EXPECT_EQ(Compare(there_ / "data/part/empty.txt", Sample(here_ / "data/part/empty.txt", 8)), Sampled::kSame);
}

TEST_F(PathSampleTest, OtherContentsAreOther) {
  const PathSample sample = Sample(here_ / "data", 4);
  there_.Write("data/part/small.txt", "SMALL");
  EXPECT_EQ(Compare(there_ / "data", sample), Sampled::kOther) << "a byte in a block that was drawn";
  there_.Write("data/part/small.txt", "smaller");
  EXPECT_EQ(Compare(there_ / "data", sample), Sampled::kOther) << "another size";
  there_.Write("data/part/small.txt", "small");
  there_.Write("data/more.txt", "");
  EXPECT_EQ(Compare(there_ / "data", sample), Sampled::kOther) << "one more file";
  EXPECT_EQ(Compare(there_ / "data/large.bin", sample), Sampled::kOther) << "a file for a folder";
  EXPECT_EQ(Compare(there_ / "data", Sample(here_ / "data/large.bin", 1)), Sampled::kOther) << "a folder for a file";
}

TEST_F(PathSampleTest, WhatIsNotThereIsAnError) {
  EXPECT_TRUE(absl::IsNotFound(CompareWithSample(there_ / "none", Sample(here_ / "data", 1), OpenAnywhere).status()));
  EXPECT_TRUE(absl::IsNotFound(SamplePath(here_ / "none", 8, [](uint64_t) { return uint64_t{0}; }).status()));
}

// A sample comes from outside.
TEST_F(PathSampleTest, WrongSamplesAreOther) {
  PathSample sample = Sample(here_ / "data", 1);
  sample.blocks[0].block = -1;
  EXPECT_EQ(Compare(there_ / "data", sample), Sampled::kOther);
  sample.blocks[0].block = 1000;
  EXPECT_EQ(Compare(there_ / "data", sample), Sampled::kOther);
  sample.blocks[0] = {"../data/large.bin", 5, 0, ""};
  EXPECT_EQ(Compare(there_ / "data", sample), Sampled::kOther);
}

}  // namespace
}  // namespace motley
