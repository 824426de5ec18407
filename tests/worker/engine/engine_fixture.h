// Whole training runs: several ranks as threads of one process, plans lowered by the planner's own lowering.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/model/parameters.h"
#include "planner/plan/plan.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"
#include "tests/worker/engine/fake_host.h"
#include "worker/engine/engine.h"

namespace motley::engine {

struct Device {
  std::vector<int64_t> microbatches;
  double share = 0;
  std::string recompute = "none";
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
  static ModelShape Qwen2() {
    ModelShape shape = Llama();
    shape.family = ModelFamily::kQwen2;
    return shape;
  }

  std::vector<RankAssignment> Assign(const ModelShape& model, const std::vector<Device>& devices) const {
    planner::Plan plan;
    plan.strategy = "hand";
    plan.epoch = Epoch(1);
    plan.global_batch = config_.training.global_batch_size;
    plan.seq_len = config_.training.seq_len;
    plan.dtype = PrecisionOf(config_.training)->compute;
    planner::StagePlan stage;
    stage.ministages = {{0, model.num_layers - 1}};
    for (size_t r = 0; r < devices.size(); ++r) {
      planner::RankPlan rank;
      rank.device = DeviceId("n" + std::to_string(r) + "/gpu0");
      rank.shard_ratio = devices[r].share;
      rank.recompute = planner::ParseOpSet(devices[r].recompute).value();
      stage.units.push_back({{rank}, devices[r].microbatches});
    }
    plan.pipelines = {{{stage}}};
    return AssignPlan(model, plan, FourSamples(plan));
  }

  // `evaluation`: microbatches by rank; 4 samples in every stage.
  std::vector<RankAssignment> AssignPlan(const ModelShape& model, const planner::Plan& plan,
                                         const std::vector<std::vector<int64_t>>& evaluation) const {
    auto assignments = AssignmentsOf(model, config_, plan, evaluation);
    EXPECT_TRUE(assignments.ok()) << assignments.status();
    return *std::move(assignments);
  }

  struct Outcome {
    std::vector<absl::StatusOr<RunEnd>> ends;
    std::vector<std::vector<StepResult>> steps;  // by rank
    std::map<int64_t, std::string> checkpoints, failed_checkpoints, blamed_devices;
    int progress = 0;
    std::vector<std::vector<TransportUse>> transports;  // that each rank reported
  };
  // `before` may set up each rank's host and keep the engine.
  Outcome Train(const std::vector<RankAssignment>& assignments, std::function<void(int, FakeHost&, Engine&)> before = {},
                std::function<EngineOptions(int)> options = {}) {
    FakeKv kv;
    Outcome outcome;
    outcome.ends.assign(assignments.size(), absl::UnknownError("not run"));
    outcome.steps.resize(assignments.size());
    outcome.transports.resize(assignments.size());
    for (const RankAssignment& assignment : assignments) MakeCheckpointFolder(assignment.config);
    OnRanks(static_cast<int>(assignments.size()), [&](int rank) {
      FakeHost host(kv);
      const auto engine = CreateEngine(host, options ? options(rank) : EngineOptions());
      if (before) before(rank, host, *engine);
      outcome.ends[rank] = engine->Run(assignments[rank]);
      outcome.steps[rank] = host.steps;
      outcome.transports[rank] = host.transports;
      if (rank == 0) outcome.checkpoints = host.checkpoints;
      if (rank == 0) outcome.failed_checkpoints = host.failed_checkpoints;
      if (rank == 0) outcome.blamed_devices = host.blamed_devices;
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

}  // namespace motley::engine
