#include "worker/engine/model/job_base.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

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
    return base.KeepOrSay(root_, 3, JobUid(std::string(32, '1')), [this](const std::string& text) { said_.push_back(text); });
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

TEST_F(JobBaseTest, TheDatasTokenizerComesWithoutTheConfigAndTheCardOfItsModel) {
  folder_.Write("tokens/tokens.json", "{}");
  for (const char* file : {"tokenizer.json", "tokenizer_config.json", "config.json", "README.md"}) {
    folder_.Write(std::string("tokens/tokenizer/") + file, "{}");
  }
  JobBase base(folder_ / "tokens", Open());
  const auto name = Keep(base);
  ASSERT_TRUE(name.ok()) << name.status();
  const auto kept = ReadBase(root_, *name);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_NE(kept->Find("tokenizer.json"), nullptr);
  EXPECT_THAT(kept->files, SizeIs(2));
}

TEST_F(JobBaseTest, WhatIsDeletedBesideATrainingJobIsWrittenAgain) {
  JobBase base(folder_ / "text", Open());
  base.BeginWith(Weights(), model_);
  const std::string name = Keep(base).value();
  std::filesystem::remove_all(model_);  // of which nothing is read any more
  std::filesystem::remove_all(root_ + "/" + name);
  EXPECT_EQ(Keep(base).value(), name);
  EXPECT_TRUE(ReadBase(root_, name).ok());
}

// Its ranks began anew meanwhile.
class JobBaseOfCheckpointTest : public JobBaseTest {
 protected:
  JobBaseOfCheckpointTest() {
    JobBase base(folder_ / "text", Open());
    base.BeginWith(Weights(), model_);
    name_ = Keep(base).value();
  }
  JobBase GoOn() {
    JobBase base(folder_ / "text", Open());
    base.GoOn(root_, name_, [this]() -> absl::StatusOr<BaseModel> {
      BaseModel again = Weights();
      auto files = ReadSmallFiles(model_, Open());
      if (!files.ok()) return files.status();
      again.files = *std::move(files);
      return again;
    });
    return base;
  }
  void Delete() { std::filesystem::remove_all(root_ + "/" + name_); }
  std::string name_;
};

TEST_F(JobBaseOfCheckpointTest, ItIsWrittenAgainByAJobThatWentOn) {
  JobBase base = GoOn();
  EXPECT_EQ(Keep(base).value(), name_);
  std::filesystem::remove_all(model_);
  Delete();
  EXPECT_EQ(Keep(base).value(), name_);
  EXPECT_TRUE(ReadBase(root_, name_).ok());
}

TEST_F(JobBaseOfCheckpointTest, WhatWasDeletedBeforeIsMadeFromWhereTheJobBegan) {
  Delete();
  JobBase base = GoOn();
  EXPECT_EQ(Keep(base).value(), name_);
  EXPECT_TRUE(ReadBase(root_, name_).ok());
  EXPECT_THAT(said_, SizeIs(0));
}

TEST_F(JobBaseOfCheckpointTest, WhatCannotBeMadeAnyMoreIsSaidAndKeepsItsName) {
  Delete();
  std::filesystem::remove_all(model_);
  JobBase base = GoOn();
  EXPECT_EQ(Keep(base).value(), name_) << "whoever puts it back mends all checkpoints";
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr("cannot open " + root_ + "/" + name_ + ": No such file or directory"));
}

TEST_F(JobBaseOfCheckpointTest, ALinkIsNotFollowed) {
  std::filesystem::rename(root_ + "/" + name_, folder_ / "moved");
  std::filesystem::create_symlink(folder_ / "moved", root_ + "/" + name_);
  JobBase base = GoOn();
  EXPECT_EQ(Keep(base).value(), name_);
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr(name_ + " is a symbolic link"));
}

}  // namespace
}  // namespace motley::engine
