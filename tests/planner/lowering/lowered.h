// A plan lowered and run, and the plainest pipelines.
#pragma once

#include <algorithm>
#include <vector>

#include "common/base/status_macros.h"
#include "gtest/gtest.h"
#include "planner/graph/program_graph.h"
#include "planner/lowering/class_programs.h"
#include "planner/scheduling/make_schedule.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {

// Of the view's actors: classes, or each unit on its own.
inline absl::StatusOr<StepGraph> GraphOfView(const Setting& setting, const PlanView& view, const Plan& plan) {
  MOTLEY_ASSIGN_OR_RETURN(const WalkedSchedule walked, MakeTrainingSchedule(view, plan));
  MOTLEY_ASSIGN_OR_RETURN(const ClassPrograms classes, LowerClasses(setting, view, walked.schedule, walked.walks));
  return GraphOfClasses(setting, view, classes);
}

// `actor_of_rank` (may be nullptr) receives, by rank in plan order, the actor that stands for it.
inline absl::StatusOr<StepGraph> LowerPlan(const Setting& setting, const Plan& plan, std::vector<int>* actor_of_rank) {
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, plan));
  if (actor_of_rank != nullptr) *actor_of_rank = view.actor_of_rank;
  return GraphOfView(setting, view, plan);
}

struct Lowered {
  StepGraph graph;
  Timeline timeline;
  std::vector<int> actor_of_rank;
  double seconds() const { return ToSeconds(timeline.end); }
  int Count(TaskKind kind) const {
    return static_cast<int>(
        std::count_if(graph.tasks.begin(), graph.tasks.end(), [kind](const Task& t) { return t.kind == kind; }));
  }
  // Seconds of all tasks of a kind, one after another.
  double Seconds(TaskKind kind) const {
    Picoseconds sum = 0;
    for (size_t t = 0; t < graph.tasks.size(); ++t) {
      if (graph.tasks[t].kind == kind) sum += timeline.spans[t].end - timeline.spans[t].begin;
    }
    return ToSeconds(sum);
  }
};

inline Lowered LowerAndRun(const Setting& setting, const Plan& plan) {
  EXPECT_TRUE(Validate(plan, setting.workload.model).ok()) << Validate(plan, setting.workload.model);
  Lowered lowered;
  auto graph = LowerPlan(setting, plan, &lowered.actor_of_rank);
  EXPECT_TRUE(graph.ok()) << graph.status();
  lowered.graph = *std::move(graph);
  auto timeline = Run(lowered.graph);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  if (timeline.ok()) lowered.timeline = *std::move(timeline);
  return lowered;
}

// Two to four equal stages of one T4 each, whose transfers take no time.
struct Uniform {
  std::unique_ptr<Setting> setting;
  Plan plan;
  double forward = 0, backward = 0;  // of one microbatch of one stage's layers
  double ends = 0;                   // embedding, head, optimizer
};
inline Uniform UniformPipeline(ScheduleFamily schedule, int64_t stages, int64_t rounds, int64_t microbatches,
                               int64_t hidden_size = 512) {
  Uniform u;
  const int64_t layers = 12;
  std::vector<std::vector<std::string>> nodes(static_cast<size_t>(stages), {"T4"});
  ModelShape model = MediumModel(layers, false);
  model.vocab_size = 2;  // the ends cost next to nothing
  model.hidden_size = hidden_size;
  model.num_heads = model.num_kv_heads = hidden_size / model.head_dim;
  model.intermediate_size = 4 * hidden_size;
  u.setting = MakeSetting(Nodes(nodes, kFastLink, kFastNic), WorkOf(model, microbatches));
  const auto dealt = DealLayers(layers, stages, rounds, TraitsOf(schedule).map);
  PipelinePlan pipeline;
  for (int64_t s = 0; s < stages; ++s) {
    pipeline.stages.push_back(
        StageOf(*u.setting, static_cast<int>(s), {std::vector<int64_t>(static_cast<size_t>(microbatches), 1)}, dealt[s], 0));
  }
  u.plan = PlanOf(*u.setting, schedule, {pipeline});
  const Costs& costs = u.setting->costs;
  u.forward = static_cast<double>(layers / stages) * costs.ForwardSeconds(0, UnitKind::kLayer, 1);
  u.backward = static_cast<double>(layers / stages) * costs.BackwardSeconds(0, UnitKind::kLayer, 1);
  for (const UnitKind end : {UnitKind::kEmbedding, UnitKind::kHead}) {
    u.ends += static_cast<double>(microbatches + stages) * (costs.ForwardSeconds(0, end, 1) + costs.BackwardSeconds(0, end, 1));
  }
  u.ends += costs.OptimizerSeconds(0, static_cast<double>(costs.TotalElements()));
  return u;
}

}  // namespace motley::planner
