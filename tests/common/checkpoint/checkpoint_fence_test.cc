// A writer that is stopped between any two of its operations while newer epochs go on and end, and one that is killed there.
#include "common/checkpoint/checkpoint_fence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kKeep = 2;

// Thousands of saves: in memory where that is possible, as nothing here is about power cuts.
fs::path Fast() { return ::access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path(); }

// Calls `at(n)` before the n-th operation or question of a writer, whose epoch is the newest as long as `newest` says.
CheckpointFence Stopping(int64_t epoch, const int64_t& newest, bool can_exchange, std::function<absl::Status(int)> at) {
  auto count = std::make_shared<int>(0);
  const auto next = [count, at] { return at((*count)++); };
  return {.epoch = epoch,
          .confirm = [epoch, &newest, next](const std::string& purpose) -> absl::Status {
            if (absl::Status status = next(); !status.ok()) return status;
            return newest == epoch ? absl::OkStatus() : absl::FailedPreconditionError(purpose);
          },
          .before = [next](const std::string&) { return next(); },
          .can_exchange = can_exchange};
}

absl::Status Save(const std::string& root, int64_t step, const CheckpointFence& fence) {
  const auto written = WriteTestCheckpoint(root, step, TinyModel(true), 0.5, fence);
  return written.ok() ? PruneCheckpoints(root, kKeep, step, fence) : written.status();
}

void ExpectWholeAndOf(const std::string& root, int64_t step, int64_t epoch) {
  const std::string folder = root + "/" + CheckpointFolderName(step);
  const auto manifest = ReadManifest(folder);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->epoch, epoch) << folder;
  EXPECT_TRUE(VerifyCheckpoint(folder, *manifest).ok()) << VerifyCheckpoint(folder, *manifest);
}

// The steps whose folders exist, and what epoch 3 saves, and those that the newer epoch saves to the job's end.
struct Case {
  std::vector<int64_t> before;
  int64_t saves;
  std::vector<int64_t> then;
};
const Case kCases[] = {
    {{20, 40}, 60, {60, 80, 100}},     // the same step, and further
    {{20, 40}, 60, {60}},              // the same step is the job's last
    {{20, 40, 60}, 60, {60, 80}},      // all three of one step
    {{20, 40, 60, 80}, 60, {45, 60}},  // 80 and 60 did not verify
    {{20, 40}, 60, {30, 50}},          // the job ends below the step of the zombie
    {{20, 40}, 60, {20, 30}},          // it begins again, and saves what the zombie deletes
};

// Epoch 3 is stopped before its operation `stop`; epoch 4 goes on to the end of the job then. With `again` only its first save
// is of epoch 4, and the others are epoch 5's, when epoch 3 is stopped again before its operation `again`, or has ended.
// False when epoch 3 has fewer operations than `stop`.
bool ZombieChangesNothing(const Case& test, bool can_exchange, int stop, int again = -1) {
  SCOPED_TRACE(testing::Message() << "saves " << test.saves << ", exchange " << can_exchange << ", stopped at " << stop << ", "
                                  << again);
  TempFolder root(Fast());
  for (const int64_t step : test.before) {
    EXPECT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.25, NewestEpoch(2)).ok());
  }
  int64_t newest = 3;
  size_t saved = 0;
  std::map<int64_t, int64_t> epochs;  // of what was saved, by step
  const auto go_on = [&](int64_t epoch, size_t until) {
    newest = epoch;
    CheckpointFence fence = NewestEpoch(epoch);
    fence.can_exchange = can_exchange;
    for (; saved < until; ++saved) {
      EXPECT_TRUE(Save(root.path(), test.then[saved], fence).ok());
      epochs[test.then[saved]] = epoch;
    }
    EXPECT_TRUE(PruneCheckpoints(root.path(), kKeep, test.then[saved - 1], fence).ok());
  };
  const size_t all = test.then.size();
  bool stopped = false;
  const CheckpointFence zombie = Stopping(3, newest, can_exchange, [&](int operation) {
    if (operation == stop) go_on(4, again < 0 ? all : 1);
    if (operation == again) go_on(5, all);
    stopped |= operation == stop;
    return absl::OkStatus();
  });
  (void)Save(root.path(), test.saves, zombie);  // whatever it says: it counts what is there
  if (!stopped) return false;
  if (saved < all) go_on(5, all);
  const auto found = FindNewestCheckpoint(root.path(), {});
  EXPECT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found.ok() && found->folder == root / CheckpointFolderName(test.then.back()));
  for (size_t i = all > kKeep ? all - kKeep : 0; i < all; ++i) ExpectWholeAndOf(root.path(), test.then[i], epochs[test.then[i]]);
  return true;
}

TEST(CheckpointFenceTest, AZombieChangesNothingWhereverItWasStopped) {
  for (const Case& test : kCases) {
    for (const bool can_exchange : {true, false}) {
      int stop = 0;
      while (ZombieChangesNothing(test, can_exchange, stop) && !HasFailure()) ++stop;
      EXPECT_GT(stop, 5);
    }
  }
}

TEST(CheckpointFenceTest, NorWhenItIsStoppedTwice) {
  for (const Case& test : {kCases[0], kCases[2]}) {
    for (const bool can_exchange : {true, false}) {
      int stop = 0;
      while (ZombieChangesNothing(test, can_exchange, stop, stop + 1) && !HasFailure()) {
        for (int again = stop + 2; again < stop + 8; ++again) ZombieChangesNothing(test, can_exchange, stop, again);
        ++stop;
      }
      EXPECT_GT(stop, 5);
    }
  }
}

// The newer epoch exists, and has done nothing yet: it begins with what was there when it was made.
TEST(CheckpointFenceTest, WhatWasPublishedTooLateIsTakenBack) {
  for (const bool can_exchange : {true, false}) {
    for (const int64_t saves : {40, 60}) {
      int taken_back = 0;
      for (int stop = 0;; ++stop) {
        SCOPED_TRACE(testing::Message() << "saves " << saves << ", exchange " << can_exchange << ", stopped at " << stop);
        TempFolder root(Fast());
        for (const int64_t step : {20, 40}) {
          ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.25, NewestEpoch(2)).ok());
        }
        int64_t newest = 3;
        const CheckpointFence zombie = Stopping(3, newest, can_exchange, [&](int operation) {
          if (operation == stop) newest = 4;
          return absl::OkStatus();
        });
        const auto written = WriteTestCheckpoint(root.path(), saves, TinyModel(true), 0.5, zombie);
        if (newest == 3 || written.ok()) break;
        ++taken_back;
        ExpectWholeAndOf(root.path(), 20, 2);
        ExpectWholeAndOf(root.path(), 40, 2);
        const auto found = FindNewestCheckpoint(root.path(), {});
        ASSERT_TRUE(found.ok()) << found.status();
        EXPECT_EQ(found->folder, root / "step-00000040");
      }
      EXPECT_GT(taken_back, 4);
    }
  }
}

// Killed before operation n: nothing that it would have done after happens.
TEST(CheckpointFenceTest, AKilledWriterLosesNothing) {
  for (const bool can_exchange : {true, false}) {
    for (const int64_t saves : {40, 60}) {
      for (int kill = 0;; ++kill) {
        SCOPED_TRACE(testing::Message() << "saves " << saves << ", exchange " << can_exchange << ", killed at " << kill);
        TempFolder root(Fast());
        for (const int64_t step : {10, 20, 40}) {
          ASSERT_TRUE(WriteTestCheckpoint(root.path(), step, TinyModel(true), 0.25, NewestEpoch(2)).ok());
        }
        const int64_t newest = 3;
        const CheckpointFence killed = Stopping(3, newest, can_exchange, [&](int operation) -> absl::Status {
          return operation < kill ? absl::OkStatus() : absl::InternalError("killed");
        });
        if (Save(root.path(), saves, killed).ok()) {
          EXPECT_GT(kill, 5);
          break;
        }
        auto found = FindNewestCheckpoint(root.path(), {});
        ASSERT_TRUE(found.ok()) << found.status();
        EXPECT_GE(found->manifest.step, 40);
        // The next epoch settles what was left, and loses nothing by it.
        const int64_t step = found->manifest.step;
        ASSERT_TRUE(PruneCheckpoints(root.path(), kKeep, step, NewestEpoch(4)).ok());
        found = FindNewestCheckpoint(root.path(), {});
        ASSERT_TRUE(found.ok()) << found.status();
        EXPECT_EQ(found->folder, root / CheckpointFolderName(step));
        EXPECT_EQ(std::distance(fs::directory_iterator(root.path()), fs::directory_iterator()), kKeep) << "nothing else stays";
      }
    }
  }
}

// What a check followed by an act would delete: the folder was exchanged between the two.
TEST(CheckpointFenceTest, DiscardLooksAtWhatItMoved) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 20, TinyModel(true), 0.5, NewestEpoch(2)).ok());
  CheckpointFence fence = NewestEpoch(3);
  bool saved = false;
  fence.before = [&](const std::string&) {
    if (!saved) EXPECT_TRUE(WriteTestCheckpoint(root.path(), 20, TinyModel(true), 0.5, NewestEpoch(4)).ok());
    saved = true;
    return absl::OkStatus();
  };
  EXPECT_EQ(DiscardCheckpoint(root / "step-00000020", 20, kAsideSuffix, fence).code(), absl::StatusCode::kFailedPrecondition);
  ExpectWholeAndOf(root.path(), 20, 4);
}

// Of a newer epoch when it is looked at first: not even moved, so that a reader never misses it.
TEST(CheckpointFenceTest, DiscardDoesNotTouchWhatANewerEpochWrote) {
  TempFolder root;
  ASSERT_TRUE(WriteTestCheckpoint(root.path(), 20, TinyModel(true), 0.5, NewestEpoch(4)).ok());
  CheckpointFence fence = NewestEpoch(3);
  std::vector<std::string> operations;
  fence.before = [&](const std::string& operation) {
    operations.push_back(operation);
    return absl::OkStatus();
  };
  EXPECT_EQ(DiscardCheckpoint(root / "step-00000020", 20, kAsideSuffix, fence).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(operations, testing::IsEmpty());
  ExpectWholeAndOf(root.path(), 20, 4);
}

}  // namespace
}  // namespace motley
