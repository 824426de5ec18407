#include "worker/daemon/files_process.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/wire/session.h"
#include "tests/common/base/patience.h"
#include "tests/common/base/temp_folder.h"
#include "tests/worker/daemon/test_assignment.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

const JobUid kUid(std::string(32, '1'));

class FilesProcessTest : public testing::Test {
 protected:
  FilesProcessTest() = default;
  void Restart(const std::string& program) {
    files_.reset();
    files_ = std::make_unique<FilesProcess>(
        FilesProcessConfig{.program = program, .local = folder_ / "files", .data_address = "127.0.0.1", .node = NodeName("n1")},
        outbox_, [this](StartCommand command) {
          const absl::MutexLock lock(&mutex_);
          started_.push_back(std::move(command));
        });
  }
  // Of two ranks.
  static StartCommand Command(const std::string& source) {
    StartCommand command;
    for (int rank = 0; rank < 2; ++rank) {
      RankAssignment assignment = TestAssignment("train", 4, rank);
      assignment.job_uid = kUid;
      assignment.config.checkpoint.storage = "local";
      assignment.resume_from = source;
      command.ranks.push_back(assignment);
    }
    command.source.name = source;
    return command;
  }
  // So many of those that wait, without log lines.
  template <typename Report>
  std::vector<Report> Reports(size_t count) {
    std::vector<Report> reports;
    while (reports.size() < count) {
      outbox_.Wait(Patience(absl::Seconds(30)), /*for_reports=*/true);
      const auto report = outbox_.TryPop();
      if (!report) break;
      if (std::holds_alternative<Report>(*report)) reports.push_back(std::get<Report>(*report));
    }
    EXPECT_EQ(reports.size(), count);
    return reports;
  }
  // Once there is one.
  std::optional<StartCommand> Started() {
    const absl::MutexLock lock(&mutex_);
    const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !started_.empty(); };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&any), Patience(absl::Seconds(30)))) return std::nullopt;
    return started_.back();
  }
  size_t NumStarted() {
    const absl::MutexLock lock(&mutex_);
    return started_.size();
  }
  // A program that takes messages and says nothing.
  std::string Silent() {
    const std::string path = folder_ / "silent";
    std::ofstream(path) << "#!/bin/sh\nexec cat <&3 >/dev/null\n";
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    return path;
  }

  TempFolder folder_;
  Outbox outbox_;
  absl::Mutex mutex_;
  std::vector<StartCommand> started_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FilesProcess> files_;
};

TEST_F(FilesProcessTest, RanksThatGoOnFromNothingStartAtOnceWithPathsOfThisNode) {
  Restart("/nowhere");  // it is not needed
  files_->Start(Command(""));
  const auto started = Started();
  ASSERT_TRUE(started);
  ASSERT_EQ(started->ranks.size(), 2u);
  for (const RankAssignment& rank : started->ranks) {
    EXPECT_EQ(rank.config.checkpoint.folder, folder_ / ("files/jobs/job." + kUid.value() + "/checkpoints"));
    EXPECT_EQ(rank.resume_from, "");
  }
}

TEST_F(FilesProcessTest, WhatCannotBeStartedAnswersAll) {
  Restart("/bin/false");
  files_->Ask({JobId("job"), Epoch(4), kUid, "h1", "secret"});
  const auto holdings = Reports<HoldingsReport>(1);
  ASSERT_EQ(holdings.size(), 1u);
  EXPECT_EQ(holdings[0].check_id, "h1");
  EXPECT_THAT(holdings[0].error, HasSubstr("the process that keeps files of jobs here is gone"));
  files_->Start(Command("step-00000040-gen-3"));
  for (const RankReport& report : Reports<RankReport>(2)) {
    EXPECT_EQ(report.damaged_checkpoint, "");
    EXPECT_EQ(report.kind, RankEventKind::kFailed);
    EXPECT_EQ(report.fault, Fault::kStorage);
    EXPECT_EQ(report.epoch, Epoch(4));
  }
  EXPECT_EQ(NumStarted(), 0u);
}

TEST_F(FilesProcessTest, ACopyIsAnsweredAlwaysAndOnce) {
  Restart("/bin/false");
  files_->Copy({JobId("job"), Epoch(4), kUid, "copy-1", {}, {"rank-0.bin"}, 0});
  const auto reports = Reports<FetchReport>(1);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].copy_id, "copy-1");
  EXPECT_EQ(reports[0].job, JobId("job"));
  EXPECT_EQ(reports[0].error_code, absl::StatusCode::kUnavailable);
  files_->Drop({JobId("job"), Epoch(4), kUid, {}});
  files_->Ask({JobId("job"), Epoch(4), kUid, "h1", "secret"});
  EXPECT_EQ(Reports<HoldingsReport>(1).size(), 1u);
  EXPECT_FALSE(outbox_.TryPop().has_value());
}

// A program that says of every start what it is told here.
TEST_F(FilesProcessTest, WhatNobodyHasWholeIsDamage) {
  const FetchReport said{JobId("job"), Epoch(4), 0, 0, false, "no node has rank-0.bin whole", absl::StatusCode::kDataLoss};
  const std::string frame = EncodeFrame(wire::ToProto(WorkerReport(said)).SerializeAsString()), path = folder_ / "says";
  std::ofstream(folder_ / "frame", std::ios::binary) << frame;
  std::ofstream(path) << "#!/bin/sh\ncat '" << folder_ / "frame"
                      << "' >&3\nexec cat <&3 >/dev/null\n";
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  Restart(path);
  files_->Start(Command("step-00000040-gen-3"));
  for (const RankReport& report : Reports<RankReport>(2)) {
    EXPECT_EQ(report.fault, Fault::kDamage);
    EXPECT_EQ(report.damaged_checkpoint, "step-00000040-gen-3");
    EXPECT_EQ(report.message, "no node has rank-0.bin whole");
  }
}

// The coordinator waits for the end of each.
TEST_F(FilesProcessTest, RanksThatWaitForTheirCheckpointAreNotStartedAfterAStop) {
  Restart(Silent());
  files_->Start(Command("step-00000040-gen-3"));
  files_->Stop({JobId("job"), Epoch(3), false, "older"});
  files_->Stop({JobId("another"), Epoch(9), false, "another's"});
  files_->Stop({JobId("job"), Epoch(4), false, "stopped"});
  const auto reports = Reports<RankReport>(2);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].rank, 0);
  EXPECT_EQ(reports[1].rank, 1);
  EXPECT_THAT(reports[0].message, HasSubstr("told to stop"));
  EXPECT_EQ(NumStarted(), 0u);
}

TEST_F(FilesProcessTest, ANewerStartTakesThePlaceOfOneThatWaits) {
  Restart(Silent());
  files_->Start(Command("step-00000040-gen-3"));
  StartCommand newer = Command("");
  for (RankAssignment& rank : newer.ranks) rank.epoch = Epoch(5);
  files_->Start(newer);
  for (const RankReport& report : Reports<RankReport>(2)) EXPECT_EQ(report.epoch, Epoch(4));
  const auto started = Started();
  ASSERT_TRUE(started);
  EXPECT_EQ(started->ranks[0].epoch, Epoch(5));
}

// Its links keep what the job deletes; weights that a job begins with are somebody's.
TEST_F(FilesProcessTest, WhatRanksHaveReadGoesAndNothingElse) {
  Restart(Silent());
  const std::string brought = folder_ / "files/jobs/job.1/resume/step-00000040-gen-3", weights = folder_ / "weights";
  for (const std::string& folder : {brought, weights}) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/file") << "bytes";
  }
  files_->Restored(weights);
  files_->Restored(brought);
  files_->Start(Command(""));  // behind them
  ASSERT_TRUE(Started());
  EXPECT_FALSE(std::filesystem::exists(brought));
  EXPECT_TRUE(std::filesystem::exists(weights + "/file"));
}

}  // namespace
}  // namespace motley::worker
