#include "planner/live/simulator.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "planner/live/layered.h"
#include "planner/live/memory_ledger.h"
#include "planner/live/plan_builder.h"
#include "planner/live/program_trace.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

TEST(CurveTest, InterpolatesAndExtrapolatesLinearly) {
  const Curve curve({1, 2, 4}, {3, 4, 8});
  EXPECT_DOUBLE_EQ(curve.At(0), 0);
  EXPECT_DOUBLE_EQ(curve.At(1), 3);
  EXPECT_DOUBLE_EQ(curve.At(3), 6);
  EXPECT_DOUBLE_EQ(curve.At(8), 16);
  EXPECT_DOUBLE_EQ(Curve({1, 2}, {4, 3}).At(4), 6);  // a falling tail stays proportional
}

TEST(CostModelTest, CollectivesInterpolateInBytesAndSkew) {
  PlannerInput input = MakeInput(SmallModel(), {{"a/gpu0", "x"}, {"a/gpu1", "x"}}, 4);
  input.collectives.points = {{1000, 0.5, 1, 2}, {1000, 1.0, 3, 4}, {2000, 0.5, 2, 3}, {2000, 1.0, 4, 7}};
  const CostModel cost = *CostModel::Create(input);
  EXPECT_DOUBLE_EQ(cost.AllGatherSeconds(1000, 0.75), 2);
  EXPECT_DOUBLE_EQ(cost.AllGatherSeconds(1500, 0.5), 1.5);
  EXPECT_DOUBLE_EQ(cost.ReduceScatterSeconds(3000, 1), 10);
  EXPECT_DOUBLE_EQ(cost.AllGatherSeconds(1000, 0.1), 1);
}

TEST(CostModelTest, RefusesIncompleteProfiles) {
  PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 4);
  PlannerInput broken = input;
  broken.compute.pop_back();
  EXPECT_THAT(std::string(CostModel::Create(broken).status().message()), HasSubstr("5 devices but 4 compute profiles"));
  broken = input;
  std::swap(broken.compute[0], broken.compute[1]);
  EXPECT_THAT(std::string(CostModel::Create(broken).status().message()), HasSubstr("is of n1/gpu1"));
  broken = input;
  broken.compute[2].layer.points.clear();
  EXPECT_THAT(std::string(CostModel::Create(broken).status().message()), HasSubstr("n2/gpu0, layer: no points"));
  broken = input;
  broken.collectives.points.clear();
  EXPECT_THAT(std::string(CostModel::Create(broken).status().message()), HasSubstr("collective profile is empty"));
}

struct Lowered {
  CostModel cost;
  Plan plan;
  std::vector<Program> programs;
};
Lowered Lower(const PlannerInput& input, const std::vector<DeviceDuty>& duties) {
  CostModel cost = *CostModel::Create(input);
  Plan plan = BuildPlan(input, cost, "test", duties, {});
  auto programs = LowerTraining(plan, input.model);
  EXPECT_TRUE(programs.ok()) << programs.status();
  return {std::move(cost), std::move(plan), *std::move(programs)};
}

TEST(SimulatorTest, OneDeviceTakesTheSumOfItsInstructions) {
  PlannerInput input = MakeInput(SmallModel(), {{"a/gpu0", "x"}}, 3);
  input.compute[0].step_overhead_seconds = 0.25;
  const Lowered l = Lower(input, {{0, 3, 2, true, 1}});
  const auto simulation = Simulate(l.cost, l.plan.pipelines[0].stages[0].placement, l.programs);
  ASSERT_TRUE(simulation.ok()) << simulation.status();
  double expected = l.cost.OptimizerSeconds(0, l.cost.num_parameters());
  for (const int64_t m : {2, 1}) {
    for (const auto& [kind, times] :
         {std::pair{UnitKind::kEmbedding, 1}, std::pair{UnitKind::kLayer, 4}, std::pair{UnitKind::kHead, 1}}) {
      const int forwards = kind == UnitKind::kLayer ? 2 : 1;  // recomputed
      expected += times * (forwards * l.cost.ForwardSeconds(0, kind, m) + l.cost.BackwardSeconds(0, kind, m));
    }
  }
  EXPECT_NEAR(simulation->ranks[0].busy_seconds, expected, 1e-12);
  EXPECT_NEAR(simulation->seconds, expected + 0.25, 1e-12);
}

TEST(SimulatorTest, CollectivesWaitForTheSlowestAndHideBehindCompute) {
  // Links so fast that only the slow device and the barrier are left.
  PlannerInput input = MakeInput(SmallModel(), {{"a/gpu0", "fast", 4e9}, {"a/gpu1", "slow", 1e9}}, 4);
  for (CollectivePoint& p : input.collectives.points) p.all_gather_seconds = p.reduce_scatter_seconds = 1e-9;
  input.collectives.barrier_seconds = 0.5;
  const Lowered l = Lower(input, {{0, 2, 2, false, 0.5}, {1, 2, 2, false, 0.5}});
  const auto simulation = *Simulate(l.cost, l.plan.pipelines[0].stages[0].placement, l.programs);
  EXPECT_NEAR(simulation.seconds, simulation.ranks[1].busy_seconds + 0.5, 1e-6);
  EXPECT_LT(simulation.ranks[0].busy_seconds, simulation.ranks[1].busy_seconds / 2);
}

TEST(SimulatorTest, FindsMismatchAndDeadlock) {
  const PlannerInput input = MakeInput(SmallModel(), {{"a/gpu0", "x"}, {"a/gpu1", "x"}}, 4);
  Lowered l = Lower(input, {{0, 2, 2, false, 0.5}, {1, 2, 2, false, 0.5}});
  const auto& placement = l.plan.pipelines[0].stages[0].placement;
  std::vector<Program> programs = l.programs;
  std::get<Gather>(programs[1].instructions[1].op).unit = 2;
  EXPECT_THAT(
      std::string(Simulate(l.cost, placement, programs).status().message()),
      HasSubstr("collectives do not match: rank 0 is at instruction 1 (gather unit 1), rank 1 at instruction 1 (gather unit 2)"));
  programs = l.programs;
  programs[1].instructions.pop_back();
  programs[1].instructions.pop_back();
  const auto status = Simulate(l.cost, placement, programs).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("deadlock: rank 0 is stuck"));
}

// The closed form that the search uses is the ledger's number.
TEST(MemoryLedgerTest, ClosedFormEqualsTheWalkedPrograms) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 300; ++i) {
    PlannerInput input = MakeInput(SmallModel(random() % 2 == 0, 1 + static_cast<int64_t>(random() % 5)), {{"a/gpu0", "x"}}, 8);
    for (UnitProfile* unit : {&input.compute[0].embedding, &input.compute[0].layer, &input.compute[0].head}) {
      const int64_t scale = 1 + static_cast<int64_t>(random() % 200000);
      for (ComputePoint& p : unit->points) p.workspace_bytes = scale * p.microbatch;
    }
    const int64_t batch = 1 + static_cast<int64_t>(random() % 12);
    const int64_t microbatch = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(batch));
    const bool recompute = random() % 2 == 0;
    input.config.training.global_batch_size = batch;
    const Lowered l = Lower(input, {{0, batch, microbatch, recompute, 1}});
    ASSERT_EQ(ActivationPeakBytes(l.cost, 0, l.programs[0]),
              PeakOfTerms(LayeredMemoryTerms(l.cost, 0, recompute, batch), batch, microbatch))
        << "batch " << batch << " microbatch " << microbatch << " recompute " << recompute;
  }
}

TEST(TraceTest, IsChromeTraceJson) {
  const PlannerInput input = MakeInput(SmallModel(), MixedDevices(), 5);
  const Lowered l = Lower(
      input, {{0, 1, 1, false, 0.2}, {1, 1, 1, false, 0.2}, {2, 1, 1, false, 0.2}, {3, 1, 1, false, 0.2}, {4, 1, 1, false, 0.2}});
  const auto simulation = *Simulate(l.cost, l.plan.pipelines[0].stages[0].placement, l.programs);
  std::vector<DeviceId> devices;
  for (const auto& d : input.devices) devices.push_back(d.id);
  const auto json = nlohmann::json::parse(TraceJson(devices, l.programs, simulation));
  double end = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "X") end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_NEAR(end, simulation.seconds * 1e6, 1);
}

}  // namespace
}  // namespace motley::planner
