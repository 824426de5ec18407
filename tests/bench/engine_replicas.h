// Jobs of two pipelines side by side, each a replica of the model with its own part of the batch, and their measured steps.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/answers/measured_step.h"
#include "tests/bench/engine_job.h"

namespace motley::engine {

// A stage of one rank or, with `tensor_parallel`, of one unit of two ranks with equal shares.
struct ReplicaStage {
  planner::LayerRange layers;
  std::vector<int> devices;  // of BenchJob::devices
  std::vector<int64_t> microbatches;
  bool tensor_parallel() const { return devices.size() > 1; }
};
using Replica = std::vector<ReplicaStage>;

inline planner::PipelinePlan PipelineOf(const BenchJob& job, const Replica& replica) {
  planner::PipelinePlan pipeline;
  for (const ReplicaStage& s : replica) {
    planner::UnitPlan unit{{}, s.microbatches};
    for (const int device : s.devices) {
      planner::RankPlan& rank = unit.ranks.emplace_back();
      rank.device = job.devices[device].id;
      rank.shard_ratio = rank.tp_share = 1.0 / static_cast<double>(s.devices.size());
    }
    planner::StagePlan& stage = pipeline.stages.emplace_back();
    stage.ministages = {s.layers};
    stage.units = {std::move(unit)};
    stage.zero_stage = 1;
  }
  return pipeline;
}

inline Planned PlannedReplicas(const BenchJob& job, const std::vector<Replica>& replicas) {
  planner::Plan plan = PlanOf(job, planner::ScheduleFamily::k1F1B, {});
  plan.pipelines.clear();
  for (const Replica& replica : replicas) plan.pipelines.push_back(PipelineOf(job, replica));
  plan.pipelines_zero_stage = replicas.size() > 1 ? 1 : 0;
  return PlannedAs(job, plan);
}

// All steps on the clocks of their ranks laid together.
inline std::vector<planner::MeasuredStep> MeasuredSteps(const Planned& planned, const Trained& trained) {
  std::vector<planner::MeasuredStep> steps;
  for (size_t s = 0; s < trained.steps[0].size(); ++s) {
    planner::RankSpans spans;
    std::vector<double> seconds;
    for (const std::vector<StepResult>& of_rank : trained.steps) {
      spans.push_back(of_rank[s].spans);
      seconds.push_back(of_rank[s].step_seconds);
    }
    steps.push_back(OrDie(
        planner::CompareStep(*planned.setting.setting, planned.result.plan, planned.result.programs, std::move(spans), seconds)));
  }
  return steps;
}

}  // namespace motley::engine
