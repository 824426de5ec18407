// Programs of plans that the engine does not run yet: every rank's passes Validate, all come to their end together, and their
// graph is priced beside the merged one of searches (Evaluate).
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/graph/program_graph.h"
#include "planner/graph/program_walk.h"
#include "planner/lowering/program_writer.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/evaluate.h"
#include "planner/scheduling/make_schedule.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

// How far two prices of the same plans are apart.
struct Apart {
  int plans = 0;
  double sum = 0, worst = 0;
  double mean() const { return sum / plans; }
};

// A validation pass with the plan's own microbatches.
void ExpectEvaluation(const Setting& setting, Plan plan) {
  std::vector<std::vector<int64_t>> microbatches;
  ForEachUnit(plan, [&](const UnitPlan& unit) { microbatches.push_back(unit.microbatches); });
  auto schedule = MakeValidationSchedule(setting, plan, microbatches);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  plan.validation = *std::move(schedule);
  const auto programs = LowerEvaluation(setting, plan);
  ASSERT_TRUE(programs.ok()) << programs.status() << "\n" << ToText(plan);
  EXPECT_EQ(CheckOrder(*programs), absl::OkStatus()) << ToText(plan);
}

// The plan with a schedule, its programs and their seconds; 0 after a failure.
double ProgramSeconds(const Setting& setting, Plan plan) {
  auto schedule = MakeTrainingSchedule(setting, plan);
  EXPECT_TRUE(schedule.ok()) << schedule.status() << "\n" << ToText(plan);
  if (!schedule.ok()) return 0;
  plan.training = *std::move(schedule);
  const auto programs = LowerTraining(setting, plan);
  EXPECT_TRUE(programs.ok()) << programs.status() << "\n" << ToText(plan);
  if (!programs.ok()) return 0;
  const auto graph = GraphOfPrograms(setting, plan, *programs);
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << ToText(plan);
  if (!graph.ok()) return 0;
  const auto timeline = Run(graph->graph);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? ToSeconds(timeline->end) : 0;
}

// Random plans that `change` accepts, after what it makes of them. `calm`: their stages' microbatches line up.
Apart Compare(uint64_t seed, int plans, bool calm, const std::function<bool(const Setting&, Plan*)>& change) {
  RandomPlans random(seed);
  Apart apart;
  while (apart.plans < plans && !testing::Test::HasFailure()) {
    const auto setting = random.NextSetting(calm);
    Plan plan = random.Next(*setting);
    MakeRunnable(&plan);
    plan.dtype = setting->workload.dtype;
    if (!change(*setting, &plan) || !Validate(plan, setting->workload.model).ok()) continue;
    const auto evaluation = Evaluate(*setting, plan);
    EXPECT_TRUE(evaluation.ok()) << evaluation.status();
    if (!evaluation.ok()) break;
    ExpectEvaluation(*setting, plan);
    const double off = std::abs(ProgramSeconds(*setting, plan) / evaluation->plan.predicted.step_seconds - 1);
    apart.worst = std::max(apart.worst, off);
    apart.sum += off;
    ++apart.plans;
  }
  testing::Test::RecordProperty(calm ? "mean_calm" : "mean", std::to_string(apart.mean()));
  testing::Test::RecordProperty(calm ? "worst_calm" : "worst", std::to_string(apart.worst));
  return apart;
}

bool IsOneOfSingles(const Plan& plan) {
  if (plan.pipelines.size() != 1) return false;
  for (const StagePlan& stage : plan.pipelines[0].stages) {
    for (const UnitPlan& unit : stage.units) {
      if (unit.ranks.size() != 1) return false;
    }
  }
  return true;
}

bool MakeZeroBubble(const Setting&, Plan* plan) {
  if (!TraitsOf(plan->schedule).takes_in_flight || !IsOneOfSingles(*plan)) return false;
  plan->schedule = ScheduleFamily::kZeroBubble;
  return true;
}
bool MakeZeroBubbleV(const Setting& setting, Plan* plan) {
  const int64_t layers = setting.workload.model.num_layers;
  const auto stages = static_cast<int64_t>(plan->pipelines[0].stages.size());
  if (!TraitsOf(plan->schedule).takes_in_flight || !IsOneOfSingles(*plan) || layers < 2 * stages) return false;
  plan->schedule = ScheduleFamily::kZeroBubbleV;
  const auto dealt = DealLayers(layers, stages, 2, VirtualStageMap::kV);
  for (int64_t s = 0; s < stages; ++s) plan->pipelines[0].stages[s].ministages = dealt[s];
  return true;
}

// Five of eight heads.
bool HasTensorParallelUnits(const Setting& setting, Plan* plan) {
  if (plan->pipelines.size() != 1 || IsOneOfSingles(*plan)) return false;
  ForEachRank(*plan, [](RankPlan& rank) {
    const double share = rank.tp_share == 0.75 ? 0.625 : rank.tp_share == 0.25 ? 0.375 : 1;
    if (rank.shard_ratio == rank.tp_share) rank.shard_ratio = share;
    rank.tp_share = share;
  });
  return ValidateForEngine(*plan, setting.workload.model).ok();
}

TEST(ProgramLanguageTest, TensorParallelUnits) {
  Compare(35, 300, false, HasTensorParallelUnits);
  const Apart apart = Compare(36, 150, true, HasTensorParallelUnits);
  EXPECT_LT(apart.mean(), 0.02);
}

bool HasSeveralPipelines(const Setting&, Plan* plan) {
  plan->pipelines_zero_stage = std::max(plan->pipelines_zero_stage, 1);
  bool singles = true;
  ForEachUnit(*plan, [&](const UnitPlan& unit) { singles &= unit.ranks.size() == 1; });
  return plan->pipelines.size() > 1 && singles;
}

TEST(ProgramLanguageTest, SeveralPipelines) {
  Compare(37, 300, false, HasSeveralPipelines);
  const Apart apart = Compare(38, 150, true, HasSeveralPipelines);
  EXPECT_LT(apart.mean(), 0.03);
}

// Stages, the two ends of the second pipeline's tied embedding, then who holds each block: the first pipeline and one stage of
// the second, or both for the embedding.
TEST(ProgramLanguageTest, GroupsAreListedOnce) {
  const auto setting = MakeSetting(Nodes({{"T4", "T4"}, {"T4", "T4"}, {"T4"}}), WorkOf(MediumModel(4, true), 8));
  Plan plan = PlanOf(*setting, ScheduleFamily::kGPipe,
                     {{{StageOf(*setting, 0, {{2}, {2}}, {{0, 3}}, 1)}},
                      {{StageOf(*setting, 2, {{2}, {2}}, {{0, 1}}, 0), StageOf(*setting, 4, {{2, 2}}, {{2, 3}}, 0)}}});
  ASSERT_EQ(Validate(plan, setting->workload.model), absl::OkStatus());
  auto schedule = MakeTrainingSchedule(*setting, plan);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  plan.training = *std::move(schedule);
  const auto programs = LowerTraining(*setting, plan);
  ASSERT_TRUE(programs.ok()) << programs.status();
  const std::string text = ToText(programs->at(4));
  EXPECT_THAT(text, testing::HasSubstr("\ngroups 0,1 2,3 4 2,3,4 0,1,2,3,4 0,1,2,3 0,1,4\n"));
  EXPECT_THAT(text, testing::HasSubstr(" microbatches 2@4,2@6\n")) << "of the global batch";
  EXPECT_THAT(text, testing::HasSubstr("reduce_scatter block=3 grad=1 group=6")) << "by all that hold it";
}

TEST(ProgramLanguageTest, ZeroBubble) {
  Compare(31, 200, false, MakeZeroBubble);
  const Apart apart = Compare(32, 150, true, MakeZeroBubble);
  EXPECT_LT(apart.mean(), 0.02);
}

TEST(ProgramLanguageTest, ZeroBubbleInAV) {
  Compare(33, 200, false, MakeZeroBubbleV);
  const Apart apart = Compare(34, 150, true, MakeZeroBubbleV);
  EXPECT_LT(apart.mean(), 0.02);
}

}  // namespace
}  // namespace motley::planner
