// Programs of classes of units: they come to their end together, are short, and cost what the ranks' own programs cost.
#include "planner/lowering/class_programs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "gtest/gtest.h"
#include "planner/graph/program_graph.h"
#include "planner/graph/program_walk.h"
#include "planner/lowering/program_writer.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/ownership.h"
#include "planner/scheduling/make_schedule.h"
#include "tests/planner/lowering/lowered.h"
#include "tests/planner/lowering/lowering_fixture.h"

namespace motley::planner {
namespace {

absl::StatusOr<ClassPrograms> ProgramsOf(const Setting& setting, const Plan& plan) {
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, plan));
  MOTLEY_ASSIGN_OR_RETURN(const WalkedSchedule walked, MakeTrainingSchedule(view, plan));
  return LowerClasses(setting, view, walked.schedule, walked.walks);
}

// Of the ranks' own programs; 0: none are written of such a plan.
double RankSeconds(const Setting& setting, Plan plan) {
  auto training = MakeTrainingSchedule(setting, plan);
  EXPECT_TRUE(training.ok()) << training.status();
  plan.training = *std::move(training);
  const auto programs = LowerTraining(setting, plan);
  if (absl::IsUnimplemented(programs.status())) return 0;
  EXPECT_TRUE(programs.ok()) << programs.status();
  const auto graph = GraphOfPrograms(setting, plan, *programs);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return ToSeconds(::motley::planner::Run(graph->graph)->end);
}

TEST(ClassProgramsTest, RandomPlansComeToTheirEnd) {
  RandomPlans random(12);
  int plans = 0;
  for (int i = 0; i < 500; ++i) {
    const auto setting = random.NextSetting();
    const Plan plan = random.Next(*setting);
    if (!Validate(plan, setting->workload.model).ok()) continue;
    const auto classes = ProgramsOf(*setting, plan);
    ASSERT_TRUE(classes.ok()) << classes.status() << "\n" << ToText(plan);
    EXPECT_EQ(CheckOrder(classes->programs), absl::OkStatus()) << ToText(plan);
    ++plans;
  }
  EXPECT_GT(plans, 300);
}

struct Distance {
  int plans = 0;
  double sum = 0, worst = 0;
};

std::string KindOf(const Plan& plan) {
  bool offloads = false, shares = false;
  ForEachRank(plan, [&](const RankPlan& rank) { offloads |= rank.offload.any(), shares |= rank.tp_share < 1; });
  const std::string kind = plan.pipelines.size() > 1 ? "several pipelines" : std::string(ScheduleName(plan.schedule));
  return absl::StrCat(kind, offloads ? ", offloading" : shares ? ", tensor-parallel" : "");
}

// Whatever the microbatches. Plans in which nobody shards are left out: ranks that run hand on what one of them has stepped.
TEST(ClassProgramsTest, RandomPlansCostWhatTheirRanksDo) {
  RandomPlans random(12);
  std::map<std::string, Distance> distances;
  for (int i = 0; i < 1000; ++i) {
    const auto setting = random.NextSetting();
    Plan plan = random.Next(*setting);
    for (PipelinePlan& pipeline : plan.pipelines) {
      for (StagePlan& stage : pipeline.stages) stage.zero_stage = std::max(stage.zero_stage, 1);
    }
    if (!Validate(plan, setting->workload.model).ok()) continue;
    const double ranks = RankSeconds(*setting, plan);
    if (ranks == 0) continue;
    const double off = std::abs(LowerAndRun(*setting, plan).seconds() / ranks - 1);
    Distance& distance = distances[KindOf(plan)];
    ++distance.plans;
    distance.sum += off;
    distance.worst = std::max(distance.worst, off);
  }
  for (const auto& [kind, distance] : distances) {
    std::printf("%-36s %4d plans: mean %4.1f %%, worst %4.1f %% from the ranks' programs\n", kind.c_str(), distance.plans,
                100 * distance.sum / distance.plans, 100 * distance.worst);
    const bool is_plain = kind.find(", ") == std::string::npos;
    EXPECT_LT(distance.sum / distance.plans, is_plain ? 0.05 : 0.15) << kind;
  }
  EXPECT_EQ(distances.size(), 18u);
}

// Block by block: gathers beside the first forward, sums beside the last backward. All but the ends hide.
TEST(ClassProgramsTest, SumsBetweenPipelinesHideBesideTheCompute) {
  const auto setting = MakeSetting(Nodes({{"T4"}, {"T4"}}), WorkOf(MediumModel(12, false), 32));
  const auto pipeline = [&](int device) { return PipelinePlan{{StageOf(*setting, device, {{8, 8}}, {{0, 11}}, 1)}}; };
  Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B, {pipeline(0), pipeline(1)});
  plan.pipelines_zero_stage = 1;
  const Lowered lowered = LowerAndRun(*setting, plan);
  Picoseconds first_forward = lowered.timeline.end, last_backward = 0;
  for (size_t t = 0; t < lowered.graph.tasks.size(); ++t) {
    const TaskSpan& span = lowered.timeline.spans[t];
    if (lowered.graph.tasks[t].kind == TaskKind::kForward) first_forward = std::min(first_forward, span.begin);
    if (lowered.graph.tasks[t].kind == TaskKind::kBackward) last_backward = std::max(last_backward, span.end);
  }
  int sums = 0, late_sums = 0, gathers = 0, early_gathers = 0;
  for (size_t t = 0; t < lowered.graph.tasks.size(); ++t) {
    const TaskSpan& span = lowered.timeline.spans[t];
    const TaskKind kind = lowered.graph.tasks[t].kind;
    sums += kind == TaskKind::kReduceScatter;
    late_sums += kind == TaskKind::kReduceScatter && span.end > last_backward;
    gathers += kind == TaskKind::kGather;
    early_gathers += kind == TaskKind::kGather && span.begin < first_forward;
  }
  EXPECT_EQ(sums, 14) << "embedding, layers, head";
  EXPECT_EQ(gathers, 14);
  EXPECT_LE(late_sums, 2);
  EXPECT_EQ(early_gathers, 1);
}

// 512 devices of four kinds in a pipeline of four stages.
TEST(ClassProgramsTest, ManyDevicesAreFewTasks) {
  std::vector<std::vector<std::string>> nodes;
  for (const char* card : {"A100-40GB", "V100-16GB", "A10G", "T4"})
    nodes.insert(nodes.end(), 16, std::vector<std::string>(8, card));
  const auto setting = MakeSetting(Nodes(nodes), WorkOf(MediumModel(32, false), 4096));
  for (const ScheduleFamily family : {ScheduleFamily::kLayered, ScheduleFamily::k1F1B, ScheduleFamily::kZeroBubble}) {
    std::vector<StagePlan> stages;
    for (int s = 0; s < 4; ++s) {
      const auto units = std::vector<std::vector<int64_t>>(128, std::vector<int64_t>(32, 1));
      stages.push_back(StageOf(*setting, 128 * s, units, {{8 * s, 8 * s + 7}}, 2, OpSet::All()));
    }
    const Lowered lowered = LowerAndRun(*setting, PlanOf(*setting, family, {{stages}}));
    EXPECT_LE(lowered.graph.tasks.size(), 5000u) << ScheduleName(family);
  }
}

}  // namespace
}  // namespace motley::planner
