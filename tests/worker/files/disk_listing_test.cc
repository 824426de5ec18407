#include "worker/files/disk_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/common/base/temp_folder.h"
#include "worker/files/job_folder.h"

namespace motley::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

const JobUid kOne(std::string(32, '1')), kTwo(std::string(32, '2'));
const std::string kInput(64, 'a'), kComing(64, 'b');

class DiskListingTest : public ::testing::Test {
 protected:
  DiskListingTest() {
    for (const JobUid& uid : {kOne, kTwo}) {
      const std::string job = absl::StrCat("jobs/words.v2.", uid.value());
      local_.Write(job + "/checkpoints/step-00000040-gen-3/rank-0.bin", std::string(5000, 'x'));
      local_.Write(job + "/resume/step-00000040-gen-3/rank-0.bin", "x");
    }
    local_.Write(absl::StrCat("jobs/words.v2.", kOne.value(), "/checkpoints/tb/events"), "x");
    local_.Write("jobs/other." + kOne.value() + "/checkpoints/.tmp-step-00000060-gen-3/rank-0.bin", "x");
    local_.Write("jobs/nobody's/file", "x");
    local_.Write("inputs/" + kInput + ".json", "{}");
    local_.Write("inputs/" + kInput + "/words.txt", "x");
    local_.Write("inputs/" + kComing + ".part/books/a.txt", "x");
    local_.Write("inputs/stray", "x");
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const ListedFiles& listed : ListDisk(local_.path())) {
      names.push_back(absl::StrCat(listed.job.value(), listed.uid.value().substr(0, 1), listed.input.substr(0, 1), " ",
                                   listed.name, listed.coming ? " comes" : ""));
      EXPECT_GT(listed.bytes, 0) << names.back();
    }
    return names;
  }
  const TempFolder local_;
};

TEST_F(DiskListingTest, SaysWhatLiesThere) {
  EXPECT_THAT(Names(), ElementsAre("other1 .tmp-step-00000060-gen-3", "words.v21 step-00000040-gen-3", "words.v21 tb",
                                   "words.v22 step-00000040-gen-3", "a words.txt", "b books comes"));
  EXPECT_TRUE(ListDisk(local_ / "none").empty());
}

TEST_F(DiskListingTest, WhatNobodyWantsGoes) {
  const auto is_there = [&](const std::string& job, const JobUid& uid) {
    return fs::exists(JobFolder(local_.path(), JobId(job), uid));
  };
  ASSERT_TRUE(RemoveUnwanted(local_.path(), {JobId("words.v2"), kOne, JobUid()}).ok());
  EXPECT_FALSE(is_there("words.v2", kOne));
  EXPECT_TRUE(is_there("words.v2", kTwo));
  ASSERT_TRUE(RemoveUnwanted(local_.path(), {JobId("words.v2"), JobUid(), kTwo}).ok());
  EXPECT_TRUE(is_there("words.v2", kTwo)) << "who has the id now";
  ASSERT_TRUE(RemoveUnwanted(local_.path(), {JobId("words.v2"), JobUid(), JobUid()}).ok());
  EXPECT_FALSE(is_there("words.v2", kTwo));
  EXPECT_TRUE(is_there("other", kOne));
  EXPECT_TRUE(RemoveUnwanted(local_.path(), {JobId("words.v2"), JobUid(), JobUid()}).ok()) << "again";
  EXPECT_TRUE(absl::IsInvalidArgument(RemoveUnwanted(local_.path(), {JobId("../jobs"), JobUid(), JobUid()})));
  EXPECT_TRUE(absl::IsInvalidArgument(RemoveUnwanted(local_.path(), {JobId("other"), JobUid("../1"), JobUid()})));
  EXPECT_TRUE(is_there("other", kOne));
}

}  // namespace
}  // namespace motley::worker
