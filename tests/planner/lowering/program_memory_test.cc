#include "planner/lowering/program_memory.h"

#include "gtest/gtest.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

// Two stages, two microbatches of two samples. The first stage's peak is where its last layer's first backward runs: all that was
// saved of both microbatches is there, the gradient that the second stage sent, and the one that is being made.
TEST(ProgramMemoryTest, AStageHoldsTheGradientItReceived) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}}), WorkOf(MediumModel(4, false), 4));
  const Plan plan = PlanOf(*setting, ScheduleFamily::kGPipe,
                           {{{StageOf(*setting, 0, {{2, 2}}, {{0, 1}}), StageOf(*setting, 1, {{2, 2}}, {{2, 3}})}}});
  const auto programs = ScheduleAndLower(*setting, plan);
  ASSERT_TRUE(programs.ok()) << programs.status();
  const Costs& costs = setting->costs;
  const int kind = setting->KindOf(0);
  const int64_t border = costs.BoundaryBytes(2);
  const auto saved = [&](UnitKind unit) { return costs.SavedBytes(kind, unit, OpSet::None(), 2); };
  // Of a layer: its input and what it keeps besides.
  const int64_t microbatch = saved(UnitKind::kEmbedding) + 2 * (border + saved(UnitKind::kLayer));
  EXPECT_EQ(ActivationPeakBytes(costs, kind, (*programs)[0]),
            2 * microbatch + 2 * border + costs.WorkspaceBytes(kind, UnitKind::kLayer, 2));
}

}  // namespace
}  // namespace motley::planner
