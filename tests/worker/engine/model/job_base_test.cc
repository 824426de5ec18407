#include "worker/engine/model/job_base.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "tests/common/base/temp_folder.h"

namespace motley::engine {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// A job that began with the weights of `model`, whose checkpoints are in `root`.
class JobBaseTest : public testing::Test {
 protected:
  JobBaseTest() {
    folder_.Write("model/tokenizer.json", "{}");
    folder_.Write("model/LICENSE", "terms");
    std::filesystem::create_directory(root_);
  }
  static BaseModel Weights() { return {{{"wte.weight", "transformer.wte.weight", DType::kFloat16}}, {}}; }
  // Whose LICENSE cannot be opened, as long as error_ says why not.
  OpenPath Open() {
    return [this](const std::string& path) -> absl::StatusOr<FileDescriptor> {
      if (error_ != 0 && path.ends_with("LICENSE")) return FileError(error_, "open", path);
      return OpenAnywhere(path);
    };
  }
  absl::StatusOr<std::string> Keep(JobBase& base) {
    return base.KeepOrSay(root_, 3, [this](const std::string& text) { said_.push_back(text); });
  }

  TempFolder folder_;
  const std::string root_ = folder_ / "checkpoints", model_ = folder_ / "model";
  int error_ = 0;
  std::vector<std::string> said_;
};

TEST_F(JobBaseTest, WhatCannotBeReadNowIsTriedAgain) {
  JobBase base(folder_ / "text", Open());
  base.BeginWith(Weights(), model_);
  for (const int error : {EIO, ESTALE, ETIMEDOUT}) {
    error_ = error;
    const absl::Status status = Keep(base).status();
    EXPECT_EQ(FaultOf(status), Fault::kStorage) << status;
  }
  EXPECT_THAT(said_, SizeIs(0));
  error_ = 0;
  const auto name = Keep(base);
  ASSERT_TRUE(name.ok()) << name.status();
  const auto kept = ReadBase(root_, *name);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept->Find("LICENSE"), "terms");
}

TEST_F(JobBaseTest, ARightThatIsRefusedHoldsNoCheckpointUp) {
  JobBase base(folder_ / "text", Open());
  base.BeginWith(Weights(), model_);
  error_ = EACCES;
  EXPECT_EQ(Keep(base).value(), "");
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr("the checkpoint is without the files of the weights that the job began from"));
  EXPECT_THAT(said_[0], HasSubstr("cannot open " + model_ + "/LICENSE: Permission denied"));
  error_ = 0;
  EXPECT_NE(Keep(base).value(), "") << "the next one has it";
}

}  // namespace
}  // namespace motley::engine
