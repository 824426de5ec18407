// Runs that save, resume, and cannot save.
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/common/checkpoint/old_format.h"
#include "tests/worker/engine/engine_fixture.h"
#include "worker/engine/checkpointer.h"

namespace motley::engine {
namespace {

// As long as it lives no file can grow beyond a few bytes: every checkpoint fails as on a full disk.
class FullDisk {
 public:
  FullDisk() : old_handler_(::signal(SIGXFSZ, SIG_IGN)) { ::getrlimit(RLIMIT_FSIZE, &old_); }
  ~FullDisk() {
    Free();
    ::signal(SIGXFSZ, old_handler_);
  }
  void Fill() {
    struct rlimit small = old_;
    small.rlim_cur = 64;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  void Free() { ::setrlimit(RLIMIT_FSIZE, &old_); }

 private:
  struct rlimit old_;
  void (*const old_handler_)(int);
};

TEST_F(EngineTest, ResumeOnAnotherPlanEqualsTheUninterruptedRun) {
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  config_.checkpoint.interval = 5;
  config_.checkpoint.keep_latest_k = 10;
  const Outcome whole = TrainOk(Assign(Gpt2(), {{{3, 1}, 0.8}, {{4}, 0.2}}));
  EXPECT_EQ(whole.checkpoints.size(), 3u);  // 5, 10, 12
  const auto manifest = ReadManifest(whole.checkpoints.at(5));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_TRUE(VerifyCheckpoint(whole.checkpoints.at(5), *manifest).ok());

  std::vector<RankAssignment> rest = Assign(Gpt2(), {{{2}, 0.0}, {{3}, 0.1}, {{2, 1}, 0.9, "full"}});
  for (RankAssignment& a : rest) {
    a.start_step = 5;
    a.epoch = Epoch(2);
    a.resume_from = whole.checkpoints.at(5);
  }
  const Outcome resumed = TrainOk(rest);
  ExpectSameCurve(resumed.steps[1], {whole.steps[0].begin() + 5, whole.steps[0].end()}, 1e-10);
}

// Older builds had the elements in another order. The cuts of the new plan lie within tensors and within rows.
TEST_F(EngineTest, ResumeFromAnOldFormatIsTheSameRun) {
  config_.training.steps = 4;
  config_.checkpoint.interval = 2;
  config_.checkpoint.keep_latest_k = 10;
  for (const ModelShape& model : {Gpt2(), Llama(), Qwen2()}) {
    config_.checkpoint.folder = (folder_ / std::string(TraitsOf(model.family).model_type)).string();
    const std::string folder = TrainOk(Assign(model, {{{3, 1}, 0.8}, {{4}, 0.2}})).checkpoints.at(2);
    config_.checkpoint.folder.clear();
    std::vector<RankAssignment> rest = Assign(model, {{{2}, 0.237}, {{3}, 0.106}, {{2, 1}, 0.657}});
    for (RankAssignment& a : rest) {
      a.start_step = 2;
      a.epoch = Epoch(2);
      a.resume_from = folder;
    }
    const Outcome now = TrainOk(rest);
    ToOldFormat(folder, 2);
    const Outcome old = TrainOk(rest);
    ASSERT_EQ(now.steps[0].size(), 2u);
    ExpectSameCurve(old.steps[0], now.steps[0], 0);
  }
}

// The coordinator looked before; only who reads the bytes can know what they are.
TEST_F(EngineTest, NothingTrainsOnBytesThatWereAlteredAfterTheCheck) {
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  config_.training.steps = 2;
  const Outcome first = TrainOk(Assign(Gpt2(), {{{8}, 1.0}}));
  const std::string folder = first.checkpoints.at(2);
  config_.training.steps = 4;
  std::vector<RankAssignment> rest = Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}});
  for (RankAssignment& a : rest) {
    a.start_step = 2;
    a.epoch = Epoch(2);
    a.resume_from = folder;
  }
  const std::string path = folder + "/rank-0.bin";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(100);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(100);
  file.put(byte);
  file.close();
  const Outcome outcome = Train(rest);
  for (const auto& steps : outcome.steps) EXPECT_TRUE(steps.empty());
  int damage = 0;
  for (const auto& end : outcome.ends) {
    if (DamagedCheckpointOf(end.status()) == folder) ++damage;
    EXPECT_TRUE(FaultOf(end.status()) == Fault::kDamage || FaultOf(end.status()) == Fault::kPeer) << end.status();
  }
  EXPECT_GE(damage, 1);
}

TEST_F(EngineTest, ResumeFromAnotherStepIsRefused) {
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  config_.training.steps = 1;
  const Outcome first = TrainOk(Assign(Gpt2(), {{{8}, 1.0}}));
  std::vector<RankAssignment> rest = Assign(Gpt2(), {{{8}, 1.0}});
  rest[0].start_step = 7;
  rest[0].resume_from = first.checkpoints.at(1);
  EXPECT_EQ(Train(rest).ends[0].status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(EngineTest, StartingLateWithoutACheckpointIsRefused) {
  std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{8}, 1.0}});
  assignments[0].start_step = 3;
  EXPECT_EQ(Train(assignments).ends[0].status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(EngineTest, AFailedCheckpointIsNamedByEveryRank) {
  // A file where the folder should be: nothing can be written below it.
  std::ofstream(folder_ / "file") << "x";
  config_.checkpoint.folder = (folder_ / "file").string();
  const Outcome outcome = Train(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}));
  for (const auto& end : outcome.ends) {
    EXPECT_FALSE(end.ok());
    EXPECT_NE(end.status().message().find("checkpoint on n0/gpu0"), std::string::npos) << end.status();
  }
}

// Each rank has a way of its own to the share, as nodes have mounts; a rank's leads to its own disk when it is gone.
class LostMountTest : public EngineTest {
 protected:
  std::string Mount(int rank) const { return (folder_ / ("mount-" + std::to_string(rank))).string(); }
  void Point(int rank, const std::string& to) const {
    std::filesystem::remove(Mount(rank));
    std::filesystem::create_directory_symlink(folder_ / to, Mount(rank));
  }
  // The mount of `lost` goes after step 7, between the saves of steps 5 and 10, and comes back in the first pause after the last.
  // Its mount point holds a folder of the job's name already, or it does not.
  Outcome TrainWithout(size_t world, int lost, bool same_name) {
    std::filesystem::create_directories(folder_ / "share/job");
    std::filesystem::create_directories(folder_ / (same_name ? "disk/job" : "disk"));
    config_.checkpoint.interval = 5;
    config_.checkpoint.keep_latest_k = 1;
    std::vector<RankAssignment> ranks = Assign(Gpt2(), std::vector<Device>(world, {{8 / int64_t(world)}, 1.0 / double(world)}));
    for (RankAssignment& rank : ranks) {
      Point(rank.rank, "share");
      rank.config.checkpoint.folder = Mount(rank.rank) + "/job";
    }
    const auto before = [this, lost](int rank, FakeHost& host, Engine&) {
      if (rank != lost) return;
      host.on_step = [this, rank](const StepResult& step) {
        if (step.step == 7) Point(rank, "disk");
      };
    };
    return Train(ranks, before, [this, lost](int rank) {
      // Rank 0's token comes soon, or never; nobody waits for rank 0 before looking.
      return EngineOptions{.look_patience = absl::Seconds(lost == 0 || rank == lost ? 1 : 60),
                           .pause = [this, lost, rank](absl::Duration) {
                             if (rank == lost) Point(rank, "share");
                           }};
    });
  }
  void ExpectOnlyTheLastWasAdded(const Outcome& outcome) {
    for (const auto& end : outcome.ends) EXPECT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(outcome.checkpoints.size(), 2u);
    EXPECT_TRUE(outcome.checkpoints.contains(5) && outcome.checkpoints.contains(12));
    EXPECT_EQ(outcome.failed_checkpoints.size(), 2u);
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "share/job")) names.push_back(entry.path().filename());
    EXPECT_EQ(names, std::vector<std::string>{"step-00000012-gen-1"}) << "and nothing was pruned for one that lacks files before";
    const std::string folder = (folder_ / "share/job/step-00000012-gen-1").string();
    const auto manifest = ReadManifest(folder);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_TRUE(VerifyCheckpoint(folder, *manifest).ok());
  }
};

TEST_F(LostMountTest, NothingIsPublishedAndItsNodeIsBlamed) {
  for (const int lost : {2, 0}) {
    for (const bool same_name : {false, true}) {
      SCOPED_TRACE(testing::Message() << "rank " << lost << (same_name ? ", a folder of the job's name" : ""));
      const Outcome outcome = TrainWithout(4, lost, same_name);
      ExpectOnlyTheLastWasAdded(outcome);
      const std::string device = "n" + std::to_string(lost) + "/gpu0";
      for (const int64_t step : {10, 12}) {
        EXPECT_EQ(outcome.blamed_devices.at(step), device) << outcome.failed_checkpoints.at(step);
        EXPECT_EQ(outcome.failed_checkpoints.at(step).find("checkpoint on " + device), 0u) << outcome.failed_checkpoints.at(step);
      }
      EXPECT_TRUE(std::filesystem::is_empty(folder_ / (same_name ? "disk/job" : "disk"))) << "nothing fills the mount point";
      for (const char* folder : {"share", "disk"}) std::filesystem::remove_all(folder_ / folder);
    }
  }
}

TEST_F(LostMountTest, OfTwoNodesNobodyIsBlamedAndNothingIsPublished) {
  const Outcome outcome = TrainWithout(2, 1, true);
  ExpectOnlyTheLastWasAdded(outcome);
  EXPECT_EQ(outcome.blamed_devices.at(10), "");
  EXPECT_NE(outcome.failed_checkpoints.at(10).find("is not the same folder on n1/gpu0"), std::string::npos)
      << outcome.failed_checkpoints.at(10);
}

TEST_F(LostMountTest, AMountThatIsGoneBeforeTheFirstSaveLeavesNothing) {
  config_.checkpoint.folder = (folder_ / "checkpoints/job").string();
  const auto before = [&](int rank, FakeHost& host, Engine&) {
    if (rank == 0) std::filesystem::remove_all(folder_ / "checkpoints/job");
  };
  std::atomic<int> pauses = 0;
  const Outcome outcome =
      Train(Assign(Gpt2(), {{{8}, 1.0}}), before, [&](int) { return EngineOptions{.pause = [&](absl::Duration) { ++pauses; }}; });
  EXPECT_EQ(FaultOf(outcome.ends[0].status()), Fault::kStorage) << outcome.ends[0].status();
  EXPECT_NE(outcome.ends[0].status().message().find(config_.checkpoint.folder + " is not there"), std::string::npos)
      << outcome.ends[0].status();
  EXPECT_GT(pauses, 0) << "it is waited for";
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "checkpoints"));
}

// Rank 0's file system knows no such call: the other rank has lost a peer, and its machine is not blamed.
TEST_F(EngineTest, WhatOneMachineRefusesIsItsOwnRanksToSay) {
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  const auto before = [](int rank, FakeHost& host, Engine&) {
    if (rank == 0) host.confirmation = FileError(EINVAL, "sync the folder", "/c");
  };
  const Outcome outcome = Train(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}), before);
  EXPECT_EQ(FaultOf(outcome.ends[0].status()), Fault::kNode) << outcome.ends[0].status();
  EXPECT_EQ(FaultOf(outcome.ends[1].status()), Fault::kPeer) << outcome.ends[1].status();
  for (const auto& end : outcome.ends) {
    EXPECT_NE(end.status().message().find("checkpoint on n0/gpu0: cannot sync the folder /c"), std::string::npos) << end.status();
  }
}

TEST_F(EngineTest, ACheckpointThatCannotBeWrittenNowEndsNothing) {
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  config_.checkpoint.interval = 5;
  config_.checkpoint.enable_step_zero_checkpoint = true;
  FullDisk disk;
  FakeClock clock;
  const auto before = [&](int rank, FakeHost& host, Engine&) {
    if (rank != 0) return;
    host.on_step = [&](const StepResult& step) {
      if (step.step == 4) disk.Fill();
      if (step.step == 7) clock.Advance(absl::Seconds(30));
    };
    host.on_checkpoint_failed = [&] { disk.Free(); };
  };
  const Outcome outcome = Train(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}), before,
                                [&](int rank) { return EngineOptions{.clock = rank == 0 ? &clock : nullptr}; });
  for (const auto& end : outcome.ends) ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(outcome.steps[0].size(), 12u);
  std::vector<int64_t> saved;
  for (const auto& [step, folder] : outcome.checkpoints) saved.push_back(step);
  EXPECT_EQ(saved, (std::vector<int64_t>{0, 8, 10, 12})) << "not at 6 and 7: 30 s of training lie between the attempts";
  ASSERT_EQ(outcome.failed_checkpoints.size(), 1u);
  const std::string& message = outcome.failed_checkpoints.at(5);
  EXPECT_NE(message.find("checkpoint on n"), std::string::npos) << message;
  EXPECT_NE(message.find(config_.checkpoint.folder), std::string::npos) << message;
  for (const auto& entry : std::filesystem::directory_iterator(config_.checkpoint.folder)) {
    EXPECT_EQ(entry.path().filename().string().rfind("step-", 0), 0u) << entry.path();
  }
}

TEST_F(EngineTest, TheLastCheckpointIsTriedAgainWithPauses) {
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  for (const bool heals : {true, false}) {
    FullDisk disk;
    std::vector<absl::Duration> pauses;  // of rank 0
    absl::Mutex mutex;
    const auto before = [&](int rank, FakeHost& host, Engine&) {
      if (rank == 0) {
        host.on_step = [&](const StepResult& step) {
          if (step.step == 11) disk.Fill();
        };
      }
    };
    // All ranks pause together, as they do in life: one that went ahead would meet the disk as it was before.
    const auto options = [&](int rank) {
      return EngineOptions{.pause = [&, rank, times = size_t{0}](absl::Duration pause) mutable {
        ++times;
        absl::MutexLock lock(&mutex);
        if (rank != 0) {
          const std::function<bool()> rank_0_paused = [&] { return pauses.size() >= times; };
          mutex.Await(absl::Condition(&rank_0_paused));
          return;
        }
        pauses.push_back(pause);
        if (heals && pauses.size() == 3) disk.Free();
      }};
    };
    std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}});
    const Outcome outcome = Train(assignments, before, options);
    EXPECT_EQ(outcome.checkpoints.count(12), heals ? 1u : 0u);
    EXPECT_EQ(outcome.failed_checkpoints.count(12), 1u);
    for (const auto& end : outcome.ends) EXPECT_TRUE(heals ? end.ok() : FaultOf(end.status()) == Fault::kStorage) << end.status();
    absl::Duration sum;
    for (const absl::Duration pause : pauses) sum += pause;
    EXPECT_EQ(sum, absl::Seconds(heals ? 1 + 2 + 4 : 1 + 2 + 4 + 8 + 9 * 10));
    disk.Free();
    std::filesystem::remove_all(config_.checkpoint.folder);
  }
}

TEST_F(EngineTest, AllRanksSaveByTheMinutesOfRank0) {
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  config_.checkpoint.interval_minutes = 10;
  FakeClock clocks[2];
  const auto before = [&](int rank, FakeHost& host, Engine&) {
    host.on_step = [&, rank](const StepResult& step) {
      if (rank == 0 && (step.step == 3 || step.step == 7)) clocks[0].Advance(absl::Minutes(10));
      if (rank == 1) clocks[1].Advance(absl::Minutes(100));
    };
  };
  const Outcome outcome =
      Train(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}), before, [&](int rank) { return EngineOptions{.clock = &clocks[rank]}; });
  for (const auto& end : outcome.ends) ASSERT_TRUE(end.ok()) << end.status();
  std::vector<int64_t> saved;
  for (const auto& [step, folder] : outcome.checkpoints) saved.push_back(step);
  EXPECT_EQ(saved, (std::vector<int64_t>{4, 8, 12}));
}

TEST_F(EngineTest, AStaleEpochPublishesNothing) {
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  const std::string left = TemporaryCheckpointFolderName(4, 0);  // by an older epoch
  std::filesystem::create_directories(folder_ / "checkpoints" / left);
  const Outcome outcome =
      Train(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}), [](int, FakeHost& host, Engine&) { host.newest = false; });
  for (const auto& end : outcome.ends) EXPECT_EQ(end.status().code(), absl::StatusCode::kFailedPrecondition) << end.status();
  // Nor does it delete anything.
  std::vector<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(config_.checkpoint.folder))
    there.push_back(entry.path().filename());
  EXPECT_EQ(there, std::vector<std::string>{left});
  TrainOk(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "checkpoints" / left));
}

}  // namespace
}  // namespace motley::engine
