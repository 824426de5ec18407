#include "planner/live/program_graph.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/live/layered.h"
#include "planner/live/plan_builder.h"
#include "planner/live/simulator.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

struct Lowered {
  CostModel cost;
  Plan plan;
  std::vector<Program> programs;
  const std::vector<UnitPlacement>& placement() const { return plan.pipelines[0].stages[0].placement; }
};
Lowered Lower(const PlannerInput& input, const std::vector<DeviceDuty>& duties) {
  CostModel cost = *CostModel::Create(input);
  Plan plan = BuildPlan(input, cost, "test", duties, {});
  auto programs = LowerTraining(plan, input.model);
  EXPECT_TRUE(programs.ok()) << programs.status();
  return {std::move(cost), std::move(plan), *std::move(programs)};
}
PlannerInput TwoDevices() { return MakeInput(SmallModel(), {{"a/gpu0", "x"}, {"a/gpu1", "x"}}, 4); }
const std::vector<DeviceDuty> kHalves = {{0, 2, 2, false, 0.5}, {1, 2, 2, false, 0.5}};

TEST(ProgramGraphTest, OneTaskForAnInstructionAndOneForACollectiveOfAll) {
  const Lowered l = Lower(TwoDevices(), kHalves);
  const auto result = GraphOfPrograms(l.cost, l.placement(), l.programs);
  ASSERT_TRUE(result.ok()) << result.status();
  const StepGraph& graph = result->graph;
  ASSERT_EQ(graph.actors.size(), 2u);
  EXPECT_EQ(graph.actors[1].name, "a/gpu1");
  size_t collectives = 0, instructions = 0;
  for (size_t r = 0; r < 2; ++r) {
    for (size_t i = 0; i < l.programs[r].instructions.size(); ++i, ++instructions) {
      const Task& task = graph.tasks[static_cast<size_t>(result->tasks[r][i])];
      const bool collective = LaneOf(l.programs[r].instructions[i].op) == Lane::kCollective;
      EXPECT_EQ(task.lanes.size(), collective ? 2u : 1u);
      collectives += collective;
      if (collective) {
        EXPECT_EQ(result->tasks[0][i], result->tasks[1][i]);
      }
    }
  }
  EXPECT_EQ(graph.tasks.size(), instructions - collectives / 2);
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    for (const int32_t a : graph.tasks[t].after) EXPECT_LT(a, static_cast<int32_t>(t));
  }
}

TEST(ProgramGraphTest, TheOverheadOfAStepComesLast) {
  PlannerInput input = TwoDevices();
  input.compute[1].step_overhead_seconds = 0.5;
  const Lowered l = Lower(input, kHalves);
  const auto result = *GraphOfPrograms(l.cost, l.placement(), l.programs);
  EXPECT_EQ(result.overhead_tasks[0], -1);
  const Timeline timeline = *::motley::planner::Run(result.graph);
  const auto overhead = static_cast<size_t>(result.overhead_tasks[1]);
  EXPECT_EQ(timeline.spans[overhead].end, timeline.end);
  EXPECT_EQ(timeline.spans[overhead].end - timeline.spans[overhead].begin, 500'000'000'000);
  const Simulation simulation = *Simulate(l.cost, l.placement(), l.programs);
  EXPECT_DOUBLE_EQ(simulation.ranks[0].busy_seconds, simulation.ranks[1].busy_seconds);
}

TEST(ProgramGraphTest, AMissingCollectiveStopsAllThatComesAfterIt) {
  Lowered l = Lower(TwoDevices(), kHalves);
  std::vector<Instruction>& second = l.programs[1].instructions;
  while (!std::holds_alternative<ReduceScalars>(second.back().op)) second.pop_back();
  second.pop_back();
  const size_t last = l.programs[0].instructions.size() - 1;
  const auto status = GraphOfPrograms(l.cost, l.placement(), l.programs).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()),
            absl::StrCat("the programs deadlock: rank 0 is stuck at instruction ", last, " (optimizer_step) waiting for ",
                         "instruction ", last - 1, " (reduce_scalars); rank 0 is stuck at instruction ", last - 1,
                         " (reduce_scalars) waiting for the other ranks"));
}

TEST(ProgramGraphTest, AnInstructionThatWaitsForALaterOneIsStuck) {
  Lowered l = Lower(TwoDevices(), kHalves);
  const auto last = static_cast<int32_t>(l.programs[1].instructions.size()) - 1;
  l.programs[1].instructions[0].after = {last};
  EXPECT_THAT(std::string(GraphOfPrograms(l.cost, l.placement(), l.programs).status().message()),
              HasSubstr(absl::StrCat("rank 1 is stuck at instruction 0 (gather unit 0) waiting for instruction ", last)));
}

TEST(ProgramGraphTest, RefusesShapesThatDoNotAgree) {
  const Lowered l = Lower(TwoDevices(), kHalves);
  const auto error = [&](const std::vector<UnitPlacement>& placement, const std::vector<Program>& programs) {
    return std::string(GraphOfPrograms(l.cost, placement, programs).status().message());
  };
  EXPECT_THAT(error(l.placement(), {l.programs[0]}), HasSubstr("1 programs for 2 ranks"));
  EXPECT_THAT(error(l.placement(), {}), HasSubstr("0 programs for 2 ranks"));
  std::vector<UnitPlacement> placement = l.placement();
  placement.pop_back();
  EXPECT_THAT(error(placement, l.programs), HasSubstr("program of rank 0 has 6 units, the placement 5"));
  placement = l.placement();
  placement[2].bounds.pop_back();
  EXPECT_THAT(error(placement, l.programs), HasSubstr("placement of unit 2 has 2 bounds for 2 ranks"));
}

}  // namespace
}  // namespace motley::planner
