#include "coordinator/client/read_while_saved.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley::client {
namespace {

using testing::HasSubstr;

class ReadWhileSavedTest : public testing::Test {
 protected:
  ReadWhileSavedTest() { Save(); }
  void Save() { EXPECT_TRUE(WriteTestCheckpoint(root_.path(), ++step_, TinyModel(true), 0.5).ok()); }
  // As a job does that keeps one.
  void SaveAndPrune() {
    std::filesystem::remove_all(root_ / NameOf(step_));
    Save();
  }
  absl::StatusOr<FoundCheckpoint> Read() { return FindNewestCheckpoint(root_.path(), {}); }

  TempFolder root_;
  int64_t step_ = 0;
  int tries_ = 0;
};

TEST_F(ReadWhileSavedTest, OneThatIsPrunedMeanwhileIsExchangedForTheNewest) {
  for (const absl::Status& gone : {absl::NotFoundError("rank-0.bin: No such file"), absl::UnavailableError("rank-0.bin: stale"),
                                   absl::DataLossError("no checkpoint verifies")}) {
    tries_ = 0;
    const auto found = ReadWhileSaved(root_.path(), [&]() -> absl::StatusOr<FoundCheckpoint> {
      if (++tries_ > 3) return Read();
      SaveAndPrune();
      return gone;
    });
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->manifest.step, step_);
    EXPECT_EQ(tries_, 4);
  }
}

TEST_F(ReadWhileSavedTest, ItDoesNotTryForEver) {
  const auto found = ReadWhileSaved(root_.path(), [&]() -> absl::StatusOr<FoundCheckpoint> {
    ++tries_;
    SaveAndPrune();
    return absl::NotFoundError("rank-0.bin: No such file");
  });
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("rank-0.bin: No such file; 10 times the checkpoints of "));
  EXPECT_EQ(tries_, 10);
}

TEST_F(ReadWhileSavedTest, OtherErrorsAreTheLastWord) {
  EXPECT_EQ(ReadWhileSaved(root_.path(), [&] { return ++tries_, absl::NotFoundError("as before"); }).status().message(),
            "as before")
      << "nothing was saved meanwhile";
  EXPECT_EQ(ReadWhileSaved(root_.path(),
                           [&] {
                             ++tries_;
                             SaveAndPrune();
                             return absl::AlreadyExistsError("of the folder to write");
                           })
                .status()
                .message(),
            "of the folder to write");
  EXPECT_EQ(tries_, 2);
  EXPECT_EQ(ReadWhileSaved(root_ / "absent", [&] { return ++tries_, absl::NotFoundError("absent"); }).status().message(),
            "absent");
}

}  // namespace
}  // namespace motley::client
