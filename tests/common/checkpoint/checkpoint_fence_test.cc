// A writer that is stopped between any two of its operations while newer epochs go on and end, and one that is killed there.
#include "common/checkpoint/checkpoint_fence.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <limits>
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
CheckpointFence Stopping(int64_t epoch, const int64_t& newest, std::function<absl::Status(int)> at) {
  auto count = std::make_shared<int>(0);
  const auto next = [count, at] { return at((*count)++); };
  return {.owner = {JobId("job-1")},
          .epoch = epoch,
          .confirm = [epoch, &newest, next](const std::string& purpose) -> absl::Status {
            if (absl::Status status = next(); !status.ok()) return status;
            return newest == epoch ? absl::OkStatus() : absl::FailedPreconditionError(purpose);
          },
          .before = [next](const std::string&) { return next(); }};
}

absl::Status Save(const std::string& root, int64_t step, const CheckpointFence& fence, int64_t keep = kKeep) {
  const auto written = WriteTestCheckpoint(root, step, TinyModel(true), 0.5, fence);
  return written.ok() ? PruneCheckpoints(root, keep, step, fence) : written.status();
}

void SaveAll(const std::string& root, const std::vector<int64_t>& steps, int64_t epoch) {
  for (const int64_t step : steps) {
    ASSERT_TRUE(WriteTestCheckpoint(root, step, TinyModel(true), 0.25, NewestEpoch(epoch)).ok());
  }
}

void ExpectWhole(const std::string& folder, int64_t epoch) {
  const auto manifest = ReadManifest(folder);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->epoch, epoch) << folder;
  EXPECT_TRUE(VerifyCheckpoint(folder, *manifest).ok()) << VerifyCheckpoint(folder, *manifest);
}

std::string NewestIn(const std::string& root) {
  const auto found = FindNewestCheckpoint(root, {});
  return found.ok() ? fs::path(found->folder).filename().string() : Message(found.status());
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

constexpr int kNever = std::numeric_limits<int>::max();
struct Stops {
  int first;           // before this operation epoch 3 is stopped, and epoch 4 goes on to the end of the job
  int again = kNever;  // only its first save is of epoch 4 then, and the others are epoch 5's, when epoch 3 is stopped again
  int killed = kNever;
};

// False when epoch 3 has fewer operations than the first stop.
bool ZombieChangesNothing(const Case& test, const Stops& stops) {
  SCOPED_TRACE(testing::Message() << "saves " << test.saves << ", stopped at " << stops.first << ", " << stops.again
                                  << ", killed at " << stops.killed);
  TempFolder root(Fast());
  SaveAll(root.path(), test.before, 2);
  int64_t newest = 3;
  size_t saved = 0;
  std::vector<std::string> names;
  const auto go_on = [&](int64_t epoch, size_t until) {
    newest = epoch;
    for (; saved < until; ++saved) {
      EXPECT_TRUE(Save(root.path(), test.then[saved], NewestEpoch(epoch)).ok());
      names.push_back(CheckpointFolderName(test.then[saved], epoch));
    }
  };
  const size_t all = test.then.size();
  bool stopped = false;
  const CheckpointFence zombie = Stopping(3, newest, [&](int operation) {
    if (operation == stops.first) go_on(4, stops.again == kNever ? all : 1);
    if (operation == stops.again) go_on(5, all);
    stopped |= operation == stops.first;
    return operation < stops.killed ? absl::OkStatus() : absl::InternalError("killed");
  });
  (void)Save(root.path(), test.saves, zombie);  // whatever it says: it counts what is there
  if (!stopped) return false;
  if (saved < all) go_on(5, all);
  EXPECT_EQ(NewestIn(root.path()), names.back());
  for (size_t i = all > kKeep ? all - kKeep : 0; i < all; ++i) {
    ExpectWhole(root / names[i], ParseCheckpointFolder(root.path(), names[i])->epoch);
  }
  return true;
}

TEST(CheckpointFenceTest, AZombieChangesNothingWhereverItWasStopped) {
  for (const Case& test : kCases) {
    int stop = 0;
    while (ZombieChangesNothing(test, {stop}) && !HasFailure()) ++stop;
    EXPECT_GT(stop, 5);
  }
}

TEST(CheckpointFenceTest, NorWhenItIsStoppedTwice) {
  for (const Case& test : {kCases[0], kCases[2]}) {
    int stop = 0;
    while (ZombieChangesNothing(test, {stop, stop + 1}) && !HasFailure()) {
      for (int again = stop + 2; again < stop + 8; ++again) ZombieChangesNothing(test, {stop, again});
      ++stop;
    }
    EXPECT_GT(stop, 5);
  }
}

TEST(CheckpointFenceTest, NorWhenItIsKilledThen) {
  for (const Case& test : kCases) {
    for (int stop = 0; ZombieChangesNothing(test, {.first = stop}) && !HasFailure(); ++stop) {
      for (int killed = stop; killed < stop + 6; ++killed) ZombieChangesNothing(test, {.first = stop, .killed = killed});
    }
  }
}

// Epoch 4 goes on from step 40 and has saved nothing, when epoch 3 publishes step 60 late.
TEST(CheckpointFenceTest, WhatComesLateIsBehindWhatANewerEpochSaves) {
  int late = 0;
  for (int stop = 0;; ++stop) {
    SCOPED_TRACE(testing::Message() << "stopped at " << stop);
    TempFolder root(Fast());
    SaveAll(root.path(), {20, 40}, 2);
    int64_t newest = 3;
    std::string begun_with;
    const CheckpointFence zombie = Stopping(3, newest, [&](int operation) {
      if (operation == stop) newest = 4;
      if (operation == stop) begun_with = NewestIn(root.path());
      return absl::OkStatus();
    });
    (void)Save(root.path(), 60, zombie, 1);
    if (newest == 3) break;
    // Nobody takes from epoch 4 what it begins with, nor what it would begin again with.
    ExpectWhole(root / begun_with, ParseCheckpointFolder(root.path(), begun_with)->epoch);
    if (begun_with != CheckpointFolderName(40, 2)) continue;
    if (NewestIn(root.path()) == CheckpointFolderName(60, 3)) ++late;
    if (stop == 0) EXPECT_EQ(late, 0) << "it asks first";
    ExpectWhole(root / CheckpointFolderName(20, 2), 2);
    ASSERT_TRUE(WriteTestCheckpoint(root.path(), 50, TinyModel(true), 0.5, NewestEpoch(4)).ok());
    EXPECT_EQ(NewestIn(root.path()), CheckpointFolderName(50, 4));
    ASSERT_TRUE(PruneCheckpoints(root.path(), kKeep, 50, NewestEpoch(4)).ok());
    ExpectWhole(root / CheckpointFolderName(40, 2), 2);
    EXPECT_EQ(std::distance(fs::directory_iterator(root.path()), fs::directory_iterator()), kKeep) << "what came late is gone";
  }
  EXPECT_GT(late, 1);
}

// Killed before operation n: nothing that it would have done after happens.
TEST(CheckpointFenceTest, AKilledWriterLosesNothing) {
  for (const int64_t saves : {40, 60}) {
    for (int kill = 0;; ++kill) {
      SCOPED_TRACE(testing::Message() << "saves " << saves << ", killed at " << kill);
      TempFolder root(Fast());
      SaveAll(root.path(), {10, 20, 40}, 2);
      const int64_t newest = 3;
      const CheckpointFence killed = Stopping(3, newest, [&](int operation) -> absl::Status {
        return operation < kill ? absl::OkStatus() : absl::InternalError("killed");
      });
      if (Save(root.path(), saves, killed).ok()) {
        EXPECT_GT(kill, 5);
        break;
      }
      const auto found = FindNewestCheckpoint(root.path(), {});
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_GE(found->manifest.step, 40);
      // The next epoch deletes what was left, and loses nothing by it.
      ASSERT_TRUE(PruneCheckpoints(root.path(), kKeep, found->manifest.step, NewestEpoch(4)).ok());
      EXPECT_EQ(root / NewestIn(root.path()), found->folder);
      EXPECT_EQ(std::distance(fs::directory_iterator(root.path()), fs::directory_iterator()), kKeep) << "nothing else stays";
    }
  }
}

// Epoch 4 takes what epoch 3 has not finished from under it: no half of it is published.
TEST(CheckpointFenceTest, WhatIsDiscardedIsNotPublished) {
  TempFolder root;
  int operations = 0;
  CheckpointFence fence = NewestEpoch(3);
  fence.before = [&](const std::string& operation) {
    if (operation.starts_with("rename ")) {
      CheckpointFence newer = NewestEpoch(4);
      newer.before = [&](const std::string& of_newer) {
        operations += of_newer.starts_with("delete ");
        // Between its rename and its deletion, epoch 3 wakes up.
        return of_newer.starts_with("delete ") ? absl::InternalError("stopped") : absl::OkStatus();
      };
      EXPECT_FALSE(PruneCheckpoints(root.path(), 0, 0, newer).ok());
    }
    return absl::OkStatus();
  };
  EXPECT_FALSE(WriteTestCheckpoint(root.path(), 20, TinyModel(true), 0.5, fence).ok());
  EXPECT_EQ(operations, 1);
  EXPECT_EQ(FindNewestCheckpoint(root.path(), {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(PruneCheckpoints(root.path(), 0, 0, NewestEpoch(5)).ok());
  EXPECT_TRUE(fs::is_empty(root.path()));
}

}  // namespace
}  // namespace motley
