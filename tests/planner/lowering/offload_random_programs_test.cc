// Ranks' programs of random plans whose state waits in host memory (docs/inside/offload.md).
#include <gtest/gtest.h>

#include <vector>

#include "planner/plan/each_rank.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/lowering/ranks_programs.h"

namespace motley::planner {
namespace {

// Kinds by rank, where the language has them.
TEST(OffloadRandomProgramsTest, ProgramsAreValidAndComeToTheirEnd) {
  RandomPlans random(71);
  int plans = 0, in_turn = 0, gradients = 0, parameters = 0, parallel = 0, mixed = 0;
  for (int i = 0; plans < 400 && !testing::Test::HasFailure(); ++i) {
    const auto setting = random.NextSetting(i % 2 == 0);
    Plan plan = random.Next(*setting);
    if (plan.pipelines.size() > 1 && random.Below(3) > 0) continue;
    if (random.Below(2) == 0 && i % 2 == 0) plan.schedule = ScheduleFamily::kLayered;
    random.DrawOffload(&plan);
    if (!Validate(plan, setting->workload.model).ok()) continue;
    ++plans;
    const std::vector<Program> programs = RanksProgramsOf(*setting, plan);
    RanksEvaluationsOf(*setting, plan);
    OffloadKinds some, all = OffloadKinds::All();
    for (const Program& program : programs) {
      some = some.Or(program.offloads);
      all = all.And(program.offloads);
    }
    bool wide = false;
    ForEachUnit(plan, [&](const UnitPlan& unit) { wide |= unit.ranks.size() > 1; });
    in_turn += plan.optimizer_steps == OptimizerSteps::kInTurn;
    gradients += some.gradients;
    parameters += some.parameters;
    mixed += some.Without(all).any();
    parallel += wide && some.parameters;
  }
  EXPECT_GT(in_turn, 60);
  EXPECT_GT(gradients, 30);
  EXPECT_GT(parameters, 150);
  EXPECT_GT(mixed, 150);
  EXPECT_GT(parallel, 20);
}

}  // namespace
}  // namespace motley::planner
