// The curve of one device, ends of every kind, profiles.
#include <ATen/Parallel.h>

#include <map>
#include <set>
#include <thread>

#include "absl/time/clock.h"
#include "common/base/fault.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/data/token_data.h"
#include "tests/worker/engine/engine_fixture.h"
#include "tests/worker/engine/fake_card.h"
#include "worker/engine/base/memory.h"

namespace motley::engine {
namespace {

TEST_F(EngineTest, UnevenPlansFollowTheCurveOfOneDevice) {
  config_.data.validation_interval = 5;
  const std::vector<std::vector<Device>> plans = {
      {{{4}, 0.5}, {{4}, 0.5}},                            // even
      {{{3, 3}, 0.7}, {{2}, 0.3}},                         // uneven batches and shares
      {{{3, 2}, 0.2}, {{3}, 0.5}, {{}, 0.3}},              // last microbatch smaller; a device that only stores
      {{{2, 2}, 0.0, "full"}, {{2, 1}, 1.0}, {{1}, 0.0}},  // one owner of everything; recompute
      {{{1}, 0.1, "full"}, {{2}, 0.4, "full"}, {{3}, 0.25}, {{2}, 0.25}},
  };
  for (const ModelShape& model : {Gpt2(), Llama(), Qwen2()}) {
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

TEST_F(EngineTest, MoreValidationSamplesThanThereAreIsNamed) {
  config_.data.validation_samples = 1'000'000;
  const auto end = Train(Assign(Gpt2(), {{{8}, 1.0}})).ends[0];
  EXPECT_EQ(end.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(end.status().message().find("data.validation_samples"), std::string::npos) << end.status();
}

// A second thread that computes with several would make a second team: together more threads than cores (docs/use/worker.md).
TEST_F(EngineTest, OnlyComputeHasTheDevicesThreads) {
  FakeKv kv;
  FakeHost host(kv);
  RankAssignment assignment = Assign(Gpt2(), {{{8}, 1.0}})[0];
  assignment.device.threads = 2;
  absl::Mutex mutex;
  std::map<std::thread::id, int> threads;
  const auto look = [&] {
    absl::MutexLock lock(&mutex);
    threads[std::this_thread::get_id()] = at::get_num_threads();
  };
  host.on_step = [&](const StepResult&) { look(); };
  ASSERT_TRUE(CreateEngine(host, {.before_instruction = [&](int64_t) { look(); }})->Run(assignment).ok());
  std::multiset<int> found;
  for (const auto& [thread, number] : threads) found.insert(number);
  EXPECT_EQ(found, (std::multiset<int>{1, 1, 2}));  // the rank's own, collectives, compute
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
  ProcessMemory()->SetLimit(0, "");
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
  const absl::Status end = Train(assignments).ends[0].status();
  EXPECT_EQ(end.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FaultOf(end), Fault::kNode) << "others may hold what the job was planned for";
}

TEST_F(EngineTest, DataThatIsGoneSinceTheJobWasPlannedIsTheMachinesFault) {
  std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{8}, 1.0}});
  for (const char* path : {"/nowhere/at/all", "/dev/null"}) {
    assignments[0].config.data.path = path;
    assignments[0].data_digest = "what it was";
    EXPECT_EQ(FaultOf(Train(assignments).ends[0].status()), Fault::kNode) << path;
    assignments[0].data_digest.clear();
    EXPECT_EQ(FaultOf(Train(assignments).ends[0].status()), Fault::kOurs) << path;
  }
}

TEST_F(EngineTest, ValidationsMayHaveDataOfTheirOwn) {
  const std::vector<RankAssignment> whole = Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}});
  // The same text as the job's is validated on from its beginning, and all of data.path is trained on.
  config_.data.validation_path = config_.data.path;
  config_.data.validation_samples = 4;
  const Outcome outcome = TrainOk(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}));
  const Outcome before = TrainOk(whole);
  EXPECT_TRUE(outcome.steps[0].back().has_validation_loss);
  EXPECT_NE(outcome.steps[0].back().validation_loss, before.steps[0].back().validation_loss);
  std::vector<RankAssignment> assignments = Assign(Gpt2(), {{{8}, 1.0}});
  assignments[0].validation_digest = "something else";
  const absl::Status end = Train(assignments).ends[0].status();
  EXPECT_NE(end.message().find("the job was planned for something else"), std::string_view::npos) << end;
  EXPECT_EQ(FaultOf(end), Fault::kNode);
  assignments[0].validation_digest.clear();
  const std::string path = (folder_ / "short.txt").string();
  std::ofstream(path) << std::string(40, 'x');  // two samples of 16
  assignments[0].config.data.validation_path = path;
  const absl::Status few = Train(assignments).ends[0].status();
  EXPECT_NE(few.message().find("data.validation_samples is 4, data.validation_path " + path + " has 2 samples"),
            std::string_view::npos)
      << few;
}

TEST_F(EngineTest, PreparedTokensAreTrainedOnAndComparedBesideTheJob) {
  TempFolder folder;
  std::vector<uint16_t> tokens;
  for (int i = 0; i < 4000; ++i) tokens.push_back(static_cast<uint16_t>(i * i % 251));
  config_.data.path = WriteStream(folder, "tokens", tokens);
  const Outcome outcome = TrainOk(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}));
  EXPECT_LT(outcome.steps[0].back().loss, outcome.steps[0][0].loss);
  // A byte that is not what was prepared, in a part that no sample of the job needs to be in.
  std::fstream file(config_.data.path + "/tokens.bin", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(7000).put('\x01');
  file.close();
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  config_.checkpoint.interval = 1;
  const Outcome damaged = Train(Assign(Gpt2(), {{{8}, 1.0}}));
  const absl::Status end = damaged.ends[0].status();
  EXPECT_NE(end.message().find("tokens.bin is not what was prepared"), std::string_view::npos) << end;
  EXPECT_EQ(FaultOf(end), Fault::kNode);
  EXPECT_TRUE(damaged.checkpoints.empty()) << "others would go on from steps on other data";
}

// By the bytes of what was validated, not of what is trained on.
TEST_F(EngineTest, AValidationHasTheBitsOfItsOwnTextsBytes) {
  const TempFolder folder;
  const std::string text = config_.data.path, stream = WriteStream(folder, "tokens", std::vector<uint16_t>(4000, 'a'));
  config_.training.steps = 1;
  const auto bits_of_nats = [this](const std::string& path, const std::string& validation_path) {
    config_.data.path = path;
    config_.data.validation_path = validation_path;
    const StepResult step = TrainOk(Assign(Gpt2(), {{{8}, 1.0}})).steps[0].back();
    EXPECT_TRUE(step.has_validation_loss);
    return step.validation_bits_per_byte.value_or(0) * std::log(2) / step.validation_loss;
  };
  EXPECT_NEAR(bits_of_nats(text, ""), 1, 1e-12) << "a byte is a token";
  EXPECT_NEAR(bits_of_nats(stream, ""), 0.8, 1e-12) << "4000 tokens of 5000 bytes";
  EXPECT_NEAR(bits_of_nats(stream, text), 1, 1e-12);
  EXPECT_NEAR(bits_of_nats(text, stream), 0.8, 1e-12);
}

TEST_F(EngineTest, NobodySavesBeforeTheDataAreComparedEverywhere) {
  const TempFolder folder;
  config_.data.path = WriteStream(folder, "tokens", std::vector<uint16_t>(4000, 'a'));
  config_.training.steps = 2;
  config_.checkpoint.folder = (folder_ / "checkpoints").string();
  for (const int slow : {0, 1}) {
    std::filesystem::remove_all(config_.checkpoint.folder);
    const Outcome outcome = Train(Assign(Gpt2(), {{{4}, 0.5}, {{4}, 0.5}}), {}, [slow](int rank) {
      // Longer than the others look for what rank 0 writes first of all.
      return EngineOptions{.look_patience = absl::Seconds(2), .before_proof = [slow, rank] {
                             if (rank == slow) absl::SleepFor(absl::Seconds(3));
                           }};
    });
    for (const auto& end : outcome.ends) EXPECT_TRUE(end.ok()) << end.status();
    EXPECT_TRUE(outcome.failed_checkpoints.empty()) << outcome.failed_checkpoints.begin()->second;
    EXPECT_TRUE(outcome.checkpoints.contains(2));
  }
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
  const double busy = step.lanes.busy[static_cast<size_t>(Lane::kCompute)];
  EXPECT_GT(busy, 0.05);
  EXPECT_GE(step.step_seconds, busy);
  EXPECT_LT(step.step_seconds, 3 * busy);
  EXPECT_NEAR(busy + step.lanes.collective + step.lanes.hand_over + step.lanes.bubble + step.lanes.host, step.step_seconds, 1e-6);
  ASSERT_EQ(step.spans.size(), assignments[0].program.instructions.size());
  for (const InstructionSpan& span : step.spans) {
    EXPECT_LE(absl::ZeroDuration(), span.begin);
    EXPECT_LE(span.begin, span.end);
    EXPECT_LE(span.end, absl::Seconds(step.step_seconds));
  }
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
    ASSERT_EQ(profile->links.size(), 6u);
    for (const MeasuredLink& link : profile->links) EXPECT_NEAR(link.bytes_per_second, 2e6, 0.2e6);
    EXPECT_GT(profile->barrier_seconds, 0);
    for (const CollectivePoint& point : profile->points) {
      EXPECT_GT(point.all_gather_seconds, 0);
      EXPECT_GT(point.reduce_scatter_seconds, 0);
    }
  });
}

class LineHost : public FakeHost {
 public:
  using FakeHost::FakeHost;
  void OnLog(const std::string& line) override { lines.push_back(line); }
  std::vector<std::string> lines;
};

class FullCard : public FakeCard {
 public:
  using FakeCard::FakeCard;
  int64_t AllocationRetries() const override { return retries; }
  std::atomic<int64_t> retries{7};  // before the first step
};

TEST_F(EngineTest, AStepThatFoundTheCardFullSaysSo) {
  FakeKv kv;
  LineHost host(kv);
  FullCard card(1);
  host.on_step = [&](const StepResult& step) {
    if (step.step == 4) card.retries += 2;
  };
  EngineOptions options;
  options.backend = &card;
  ASSERT_EQ(CreateEngine(host, options)->Run(Assign(Gpt2(), {{{8}, 1.0}})[0]).status(), absl::OkStatus());
  std::vector<std::string> full;
  for (const std::string& line : host.lines) {
    if (line.find("its memory was full") != std::string::npos) full.push_back(line);
  }
  ASSERT_EQ(full.size(), 1);
  EXPECT_EQ(full[0].find("n0/gpu0, step 5: its memory was full 2 times"), 0) << full[0];
}

}  // namespace
}  // namespace motley::engine
