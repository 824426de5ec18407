// Whole training runs: several ranks as threads of one process, plans lowered by the planner's own lowering.
#include "worker/engine/engine.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "common/checkpoint.h"
#include "common/fault.h"
#include "common/parameters.h"
#include "planner/lowering/layered.h"
#include "tests/worker/engine/fake_host.h"
#include "worker/engine/memory.h"

namespace motley::engine {
namespace {

struct Device {
  std::vector<int64_t> microbatches;
  double share = 0;
  std::string recompute = "none";
};

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

class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("engine_test-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream text(folder_ / "text.txt");
    for (int i = 0; i < 400; ++i)
      text << "line " << i * 37 % 101 << " of a small text; the quick brown fox number " << i << ".\n";
    config_.training = {.steps = 12, .seq_len = 16, .global_batch_size = 8, .max_norm = 0.5, .seed = 3, .dtype = "float64"};
    config_.optimizer.lr = 5e-3;
    config_.lr_scheduler.warmup_steps = 3;
    config_.data.path = (folder_ / "text.txt").string();
    config_.data.validation_samples = 4;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static ModelShape Gpt2() {
    return {.family = ModelFamily::kGpt2,
            .vocab_size = 256,
            .hidden_size = 16,
            .num_layers = 3,
            .num_heads = 2,
            .num_kv_heads = 2,
            .head_dim = 8,
            .intermediate_size = 64,
            .max_positions = 32,
            .tie_embeddings = true};
  }
  static ModelShape Llama() {
    ModelShape shape = Gpt2();
    shape.family = ModelFamily::kLlama;
    shape.num_heads = 4;
    shape.head_dim = 4;
    shape.intermediate_size = 40;
    shape.tie_embeddings = false;
    return shape;
  }

  std::vector<RankAssignment> Assign(const ModelShape& model, const std::vector<Device>& devices) const {
    planner::Plan plan;
    plan.strategy = "hand";
    plan.epoch = Epoch(1);
    plan.global_batch = config_.training.global_batch_size;
    plan.seq_len = config_.training.seq_len;
    plan.dtype = *ParseDType(config_.training.dtype);
    planner::StagePlan stage;
    stage.ministages = {{0, model.num_layers - 1}};
    for (size_t r = 0; r < devices.size(); ++r) {
      planner::RankPlan rank;
      rank.device = DeviceId("n" + std::to_string(r) + "/gpu0");
      rank.shard_ratio = devices[r].share;
      rank.recompute = devices[r].recompute;
      stage.units.push_back({{rank}, devices[r].microbatches});
    }
    for (const UnitSpec& unit : ParameterLayout(model)) {
      UnitPlacement placement{{0}};
      double before = 0;
      for (const Device& device : devices) {
        before += device.share;
        placement.bounds.push_back(std::min<int64_t>(std::llround(before * unit.num_elements), unit.num_elements));
      }
      placement.bounds.back() = unit.num_elements;
      stage.placement.push_back(placement);
    }
    plan.pipelines = {{{stage}}};
    const auto programs = planner::LowerTraining(plan, model);
    EXPECT_TRUE(programs.ok()) << programs.status();
    const int world = static_cast<int>(devices.size());
    std::vector<std::vector<int64_t>> evaluation(world);
    evaluation[world - 1] = {3};
    evaluation[0].push_back(1);
    const auto evaluations = planner::LowerEvaluation(model, evaluation);
    EXPECT_TRUE(evaluations.ok()) << evaluations.status();

    std::vector<RankAssignment> assignments(devices.size());
    int64_t batch_begin = 0;
    for (int r = 0; r < world; ++r) {
      RankAssignment& a = assignments[r];
      a.microbatches = devices[r].microbatches;
      a.batch_size = std::accumulate(a.microbatches.begin(), a.microbatches.end(), int64_t{0});
      a.batch_begin = batch_begin;
      batch_begin += a.batch_size;
      a.job = JobId("job");
      a.epoch = Epoch(1);
      a.rank = r;
      for (int other = 0; other < world; ++other) {
        a.devices.emplace_back("n" + std::to_string(other) + "/gpu0");
        a.data_addresses.push_back("127.0.0.1");
      }
      a.placement = stage.placement;
      a.program = (*programs)[r];
      a.evaluation = (*evaluations)[r];
      a.evaluation_begin = r == 0 ? 0 : 1;  // rank 0: sample 0; the last: 1 to 3 (alone: microbatches 3 and 1 from 0)
      a.model = model;
      a.config = config_;
      a.device.id = a.devices[r];
    }
    return assignments;
  }

  struct Outcome {
    std::vector<absl::StatusOr<RunEnd>> ends;
    std::vector<std::vector<StepResult>> steps;  // by rank
    std::map<int64_t, std::string> checkpoints, failed_checkpoints;
    int progress = 0;
  };
  // `before` may set up each rank's host and keep the engine.
  Outcome Train(const std::vector<RankAssignment>& assignments, std::function<void(int, FakeHost&, Engine&)> before = {},
                std::function<EngineOptions(int)> options = {}) {
    FakeKv kv;
    Outcome outcome;
    outcome.ends.assign(assignments.size(), absl::UnknownError("not run"));
    outcome.steps.resize(assignments.size());
    OnRanks(static_cast<int>(assignments.size()), [&](int rank) {
      FakeHost host(kv);
      const auto engine = CreateEngine(host, options ? options(rank) : EngineOptions());
      if (before) before(rank, host, *engine);
      outcome.ends[rank] = engine->Run(assignments[rank]);
      outcome.steps[rank] = host.steps;
      if (rank == 0) outcome.checkpoints = host.checkpoints;
      if (rank == 0) outcome.failed_checkpoints = host.failed_checkpoints;
      if (rank == 0) outcome.progress = host.progress;
    });
    return outcome;
  }
  Outcome TrainOk(const std::vector<RankAssignment>& assignments) {
    Outcome outcome = Train(assignments);
    for (const auto& end : outcome.ends) EXPECT_TRUE(end.ok()) << end.status();
    return outcome;
  }

  static void ExpectSameCurve(const std::vector<StepResult>& got, const std::vector<StepResult>& expected, double tolerance) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].step, expected[i].step);
      EXPECT_NEAR(got[i].loss / expected[i].loss, 1, tolerance) << "step " << got[i].step;
      EXPECT_NEAR(got[i].grad_norm / expected[i].grad_norm, 1, tolerance) << "step " << got[i].step;
      EXPECT_EQ(got[i].has_validation_loss, expected[i].has_validation_loss);
      if (expected[i].has_validation_loss) {
        EXPECT_NEAR(got[i].validation_loss / expected[i].validation_loss, 1, tolerance);
      }
    }
  }

  std::filesystem::path folder_;
  JobConfig config_;
};

TEST_F(EngineTest, UnevenPlansFollowTheCurveOfOneDevice) {
  config_.data.validation_interval = 5;
  const std::vector<std::vector<Device>> plans = {
      {{{4}, 0.5}, {{4}, 0.5}},                            // even
      {{{3, 3}, 0.7}, {{2}, 0.3}},                         // uneven batches and shares
      {{{3, 2}, 0.2}, {{3}, 0.5}, {{}, 0.3}},              // last microbatch smaller; a device that only stores
      {{{2, 2}, 0.0, "full"}, {{2, 1}, 1.0}, {{1}, 0.0}},  // one owner of everything; recompute
      {{{1}, 0.1, "full"}, {{2}, 0.4, "full"}, {{3}, 0.25}, {{2}, 0.25}},
  };
  for (const ModelShape& model : {Gpt2(), Llama()}) {
    const Outcome alone = TrainOk(Assign(model, {{{8}, 1.0}}));
    ASSERT_EQ(alone.steps[0].size(), 12u);
    EXPECT_NEAR(alone.steps[0][0].loss, std::log(256), 0.5);
    EXPECT_LT(alone.steps[0].back().loss, alone.steps[0][0].loss - 0.5);
    EXPECT_TRUE(alone.steps[0][4].has_validation_loss);
    EXPECT_TRUE(alone.steps[0].back().has_validation_loss);
    for (const auto& plan : plans) {
      const Outcome together = TrainOk(Assign(model, plan));
      for (const auto& of_rank : together.steps) ExpectSameCurve(of_rank, alone.steps[0], 1e-10);
      EXPECT_GT(together.progress, 0);
    }
  }
}

TEST_F(EngineTest, Float32StaysWithinItsPrecision) {
  config_.training.dtype = "float32";
  const Outcome alone = TrainOk(Assign(Llama(), {{{8}, 1.0}}));
  const Outcome together = TrainOk(Assign(Llama(), {{{3, 1}, 0.9}, {{4}, 0.1}}));
  ExpectSameCurve(together.steps[0], alone.steps[0], 1e-4);
}

TEST_F(EngineTest, ResumeOnAnotherPlanEqualsTheUninterruptedRun) {
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  config_.checkpoint.interval = 5;
  config_.checkpoint.keep_latest_k = 10;
  const Outcome whole = TrainOk(Assign(Gpt2(), {{{3, 1}, 0.8}, {{4}, 0.2}}));
  EXPECT_EQ(whole.checkpoints.size(), 4u);  // 0, 5, 10, 12
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

TEST_F(EngineTest, MoreValidationSamplesThanThereAreIsNamed) {
  config_.data.validation_samples = 1'000'000;
  const auto end = Train(Assign(Gpt2(), {{{8}, 1.0}})).ends[0];
  EXPECT_EQ(end.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(end.status().message().find("data.validation_samples"), std::string::npos) << end.status();
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

TEST_F(EngineTest, ACheckpointThatCannotBeWrittenNowEndsNothing) {
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  config_.checkpoint.interval = 5;
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
  EXPECT_EQ(saved, (std::vector<int64_t>{0, 4, 8, 12}));
}

TEST_F(EngineTest, ASecondRunOfTheSameEngineIsLegal) {
  FakeKv kv;
  std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}});
  OnRanks(2, [&](int rank) {
    FakeHost host(kv);
    const auto engine = CreateEngine(host, {});
    ASSERT_TRUE(engine->Run(assignments[rank]).ok());
    RankAssignment again = assignments[rank];
    again.epoch = Epoch(2);
    ASSERT_TRUE(engine->Run(again).ok());
    EXPECT_EQ(host.steps.size(), 24u);
    EXPECT_EQ(host.steps[0].loss, host.steps[12].loss);
  });
}

TEST_F(EngineTest, AModelBeyondTheDevicesMemoryIsResourceExhausted) {
  std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{8}, 1.0}});
  assignments[0].device.memory_bytes = 100'000;
  const auto end = Train(assignments).ends[0];
  InstallMemoryLimit(0);
  EXPECT_EQ(end.status().code(), absl::StatusCode::kResourceExhausted) << end.status();
  EXPECT_NE(end.status().message().find("n0/gpu0"), std::string::npos) << end.status();
}

TEST_F(EngineTest, AllRanksStopAfterTheSameStepAndSave) {
  config_.training.steps = 100000;
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  const Outcome outcome = Train(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}), [](int rank, FakeHost& host, Engine& engine) {
    if (rank == 1) {
      host.on_step = [&engine](const StepResult& step) {
        if (step.step == 3) engine.RequestStop(true);
      };
    }
  });
  for (const auto& end : outcome.ends) ASSERT_TRUE(end.ok() && *end == RunEnd::kStopped) << end.status();
  EXPECT_EQ(outcome.steps[0].size(), outcome.steps[1].size());
  EXPECT_EQ(outcome.checkpoints.count(outcome.steps[0].back().step), 1u);
}

TEST_F(EngineTest, AStopAskedOfAFailedRunIsForgotten) {
  const std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{8}, 1.0}});
  RankAssignment wrong = assignments[0];
  wrong.rank = 5;
  const Outcome outcome = Train(assignments, [&wrong](int, FakeHost&, Engine& engine) {
    engine.RequestStop(false);
    EXPECT_FALSE(engine.Run(wrong).ok());
  });
  ASSERT_TRUE(outcome.ends[0].ok()) << outcome.ends[0].status();
  EXPECT_EQ(*outcome.ends[0], RunEnd::kAllSteps);
}

TEST_F(EngineTest, WithoutValidationNeedsNoValidationSamples) {
  config_.data.validation_fraction = 0;
  std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}});
  for (RankAssignment& a : assignments) a.evaluation = Program();
  const Outcome outcome = TrainOk(assignments);
  ASSERT_EQ(outcome.steps[0].size(), 12u);
  for (const StepResult& step : outcome.steps[0]) EXPECT_FALSE(step.has_validation_loss);
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
  for (const auto& entry : std::filesystem::directory_iterator(config_.checkpoint.folder)) there.push_back(entry.path().filename());
  EXPECT_EQ(there, std::vector<std::string>{left});
  TrainOk(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "checkpoints" / left));
}

TEST_F(EngineTest, NonFiniteLossStopsAndNamesTheLayer) {
  config_.optimizer.lr = 1e200;
  config_.training.max_norm = 0;
  config_.lr_scheduler.warmup_steps = 0;
  const Outcome outcome = Train(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}));
  for (const auto& end : outcome.ends) {
    EXPECT_EQ(end.status().code(), absl::StatusCode::kAborted) << end.status();
    EXPECT_NE(end.status().message().find("forward of"), std::string::npos) << end.status();
    EXPECT_NE(end.status().message().find(" on n"), std::string::npos) << end.status();
  }
}

TEST_F(EngineTest, WrongDataIsNamed) {
  std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{8}, 1.0}});
  assignments[0].data_digest = "something else";
  EXPECT_EQ(Train(assignments).ends[0].status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(EngineTest, AnErrorOfOneRankEndsTheOthers) {
  std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}});
  assignments[1].data_digest = "something else";
  const Outcome outcome = Train(assignments);
  EXPECT_EQ(outcome.ends[1].status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(outcome.ends[0].status().code(), absl::StatusCode::kUnavailable) << outcome.ends[0].status();
}

TEST_F(EngineTest, EmulatedStepTakesTheDeclaredTime) {
  config_.training.steps = 3;
  std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}});
  for (RankAssignment& a : assignments) {
    a.device.kind = DeviceKind::kEmulated;
    a.device.flops_per_second = 50e6;
    a.device.link_bytes_per_second = 5e6;
  }
  const Outcome outcome = TrainOk(assignments);
  const StepResult& step = outcome.steps[0].back();
  EXPECT_GT(step.busy_seconds, 0.05);
  EXPECT_GE(step.step_seconds, step.busy_seconds);
  EXPECT_LT(step.step_seconds, 3 * step.busy_seconds);
}

TEST_F(EngineTest, ProfilesCollectivesOverSizeAndSkew) {
  std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}, {{}, 0.0}});
  for (RankAssignment& a : assignments) {
    a.device.kind = DeviceKind::kEmulated;
    a.device.link_bytes_per_second = 2e6;
  }
  FakeKv kv;
  OnRanks(3, [&](int rank) {
    FakeHost host(kv);
    const auto profile = CreateEngine(host, {})->ProfileCollectives(assignments[rank]);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(profile->points.size(), 6u);
    EXPECT_GT(profile->barrier_seconds, 0);
    for (const CollectivePoint& point : profile->points) {
      EXPECT_GT(point.all_gather_seconds, 0);
      EXPECT_GT(point.reduce_scatter_seconds, 0);
    }
  });
}

}  // namespace
}  // namespace motley::engine
