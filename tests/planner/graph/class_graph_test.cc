// Graphs of class programs beside the graphs of the ranks' own: classes of one unit give the same, classes of like units what
// theirs do at once.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "planner/graph/program_graph.h"
#include "planner/lowering/program_writer.h"
#include "planner/plan/ownership.h"
#include "planner/plan/placement.h"
#include "planner/scheduling/make_schedule.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

constexpr double kRounded = 1e-6;  // ranks own whole elements

// Each rank a class, each unit of the model a block, groups the plan's stages.
ClassPrograms OneByOne(const Setting& setting, const PlanView& view, std::vector<Program> programs) {
  ClassPrograms classes{std::move(programs), {{true, 0, 0, false}}, {}};
  const int64_t layers = setting.workload.model.num_layers;
  for (int64_t l = 0; l < layers; ++l) classes.blocks.push_back({false, l, 1, false});
  classes.blocks.push_back({false, layers, 0, true});
  for (int s = 0; s < static_cast<int>(view.stages.size()); ++s) classes.stages_of.push_back({s});
  return classes;
}

void ExpectSame(const StepGraph& classes, const StepGraph& ranks) {
  ASSERT_EQ(classes.tasks.size(), ranks.tasks.size());
  for (size_t a = 0; a < ranks.actors.size(); ++a) EXPECT_EQ(classes.actors[a].name, ranks.actors[a].name);
  for (size_t t = 0; t < ranks.tasks.size(); ++t) {
    const Task &task = classes.tasks[t], &rank = ranks.tasks[t];
    ASSERT_EQ(TaskLabel(task), TaskLabel(rank)) << t;
    ASSERT_EQ(task.lanes, rank.lanes) << t;
    ASSERT_EQ(task.after, rank.after) << t;
    const double seconds = ToSeconds(rank.duration);
    const double tolerance = task.kind <= TaskKind::kBackwardWeight ? 1e-9 : 10 * kRounded;  // a small unit rounds more
    ASSERT_NEAR(ToSeconds(task.duration), seconds, tolerance * seconds + 2e-12) << t;
  }
  const auto timeline = Run(classes), expected = Run(ranks);
  ASSERT_TRUE(timeline.ok() && expected.ok()) << timeline.status() << expected.status();
  EXPECT_NEAR(ToSeconds(timeline->end), ToSeconds(expected->end), kRounded * ToSeconds(expected->end));
}

bool OfSingleRanks(const Plan& plan) {
  return std::all_of(plan.pipelines[0].stages.begin(), plan.pipelines[0].stages.end(), [](const StagePlan& stage) {
    return std::all_of(stage.units.begin(), stage.units.end(), [](const UnitPlan& unit) { return unit.ranks.size() == 1; });
  });
}

// Of a tied embedding's two ends ranks meet all at once, classes set by set.
TEST(ClassGraphTest, OneByOneItIsTheRanksGraph) {
  RandomPlans random(41);
  for (int plans = 0; plans < 150;) {
    const auto setting = random.NextSetting(random.Below(2) == 0);
    Plan plan = random.Next(*setting);
    MakeRunnable(&plan);
    const bool apart = plan.pipelines[0].stages.size() > 1 && setting->workload.model.tie_embeddings;
    if (plan.pipelines.size() > 1 || apart || !OfSingleRanks(plan)) continue;
    GiveOwnership(setting->workload.model, &plan);
    if (!Validate(plan, setting->workload.model).ok()) continue;
    const auto schedule = MakeTrainingSchedule(*setting, plan);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    plan.training = *schedule;
    const auto programs = LowerTraining(*setting, plan);
    ASSERT_TRUE(programs.ok()) << programs.status();
    const auto ranks = GraphOfPrograms(*setting, plan, *programs);
    ASSERT_TRUE(ranks.ok()) << ranks.status();
    const PlanView view = ViewOf(*setting, plan, {.merge = false, .assign_samples = false}).value();
    const auto classes = GraphOfClasses(*setting, view, OneByOne(*setting, view, *programs));
    ASSERT_TRUE(classes.ok()) << classes.status();
    SCOPED_TRACE(testing::Message() << "plan " << plans << ", " << ScheduleName(plan.schedule));
    ExpectSame(*classes, ranks->graph);
    ++plans;
  }
}

// The programs of each stage's first rank as those of all its ranks, which are alike and meet rank by rank.
ClassPrograms StageByStage(const Setting& setting, const PlanView& view, const std::vector<Program>& programs) {
  ClassPrograms classes = OneByOne(setting, view, {});
  for (const StageView& stage : view.stages) {
    Program program = programs[stage.first_rank];
    program.rank = static_cast<int32_t>(classes.programs.size());
    program.world = static_cast<int32_t>(view.stages.size());
    program.groups.clear();
    for (int32_t s = 0; s < program.world; ++s) program.groups.push_back({s});
    for (Microbatch& microbatch : program.microbatches) microbatch.samples *= stage.num_units;
    for (Instruction& instruction : program.instructions) {
      const auto widen = [&](auto& op) {
        if constexpr (requires { op.peer; }) {
          op.peer = view.ranks[op.peer].stage;
          op.samples *= stage.num_units;
        }
      };
      std::visit(widen, instruction.op);
    }
    classes.programs.push_back(std::move(program));
  }
  return classes;
}

TEST(ClassGraphTest, AClassOfLikeUnitsTakesAsLongAsItsRanks) {
  for (const ScheduleFamily family : {ScheduleFamily::kLayered, ScheduleFamily::k1F1B, ScheduleFamily::kZeroBubble}) {
    for (const int zero_stage : {1, 2, 3}) {
      for (const size_t num_stages : {1, 2, 3}) {
        const std::vector<std::string> node(4, "T4");
        Cluster cluster = Nodes(std::vector<std::vector<std::string>>(num_stages, node));
        cluster.overlap_efficiency = 0.7;
        const auto setting = MakeSetting(std::move(cluster), WorkOf(MediumModel(6, num_stages == 1), 48));
        PipelinePlan pipeline;
        const auto dealt = DealLayers(6, static_cast<int64_t>(num_stages), 1);
        for (size_t s = 0; s < num_stages; ++s) {
          const std::vector<std::vector<int64_t>> units(4, std::vector<int64_t>(6, 2));
          pipeline.stages.push_back(StageOf(*setting, static_cast<int>(4 * s), units, dealt[s], zero_stage, OpSet::All()));
        }
        Plan plan = PlanOf(*setting, family, {pipeline});
        plan.training = MakeTrainingSchedule(*setting, plan).value();
        const auto programs = LowerTraining(*setting, plan);
        ASSERT_TRUE(programs.ok()) << programs.status();
        const auto ranks = GraphOfPrograms(*setting, plan, *programs);
        ASSERT_TRUE(ranks.ok()) << ranks.status();
        const PlanView view = ViewOf(*setting, plan).value();
        ASSERT_EQ(view.actors.size(), num_stages);
        const auto classes = GraphOfClasses(*setting, view, StageByStage(*setting, view, *programs));
        ASSERT_TRUE(classes.ok()) << classes.status();
        const double step = ToSeconds(planner::Run(ranks->graph)->end);
        EXPECT_NEAR(ToSeconds(planner::Run(*classes)->end), step, 10 * kRounded * step)
            << ScheduleName(family) << ", ZeRO " << zero_stage << ", stages " << num_stages;
      }
    }
  }
}

}  // namespace
}  // namespace motley::planner
