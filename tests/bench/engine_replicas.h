// Jobs of two pipelines side by side, each a replica of the model with its own part of the batch, and their measured steps.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/answers/measured_step.h"
#include "tests/bench/engine_job.h"

namespace motley::engine {

// A stage of one tensor-parallel unit with equal shares or, where its ZeRO stage is 2 or 3, of as many ranks with equal shards.
struct ReplicaStage {
  planner::LayerRange layers;
  std::vector<int> devices;           // of BenchJob::devices
  std::vector<int64_t> microbatches;  // of each unit
  int zero_stage = 1;
  int64_t samples() const {
    const auto units = zero_stage > 1 ? static_cast<int64_t>(devices.size()) : 1;
    return units * std::accumulate(microbatches.begin(), microbatches.end(), int64_t{0});
  }
};
using Replica = std::vector<ReplicaStage>;

inline planner::PipelinePlan PipelineOf(const BenchJob& job, const Replica& replica) {
  planner::PipelinePlan pipeline;
  for (const ReplicaStage& s : replica) {
    planner::StagePlan& stage = pipeline.stages.emplace_back();
    stage.ministages = {s.layers};
    stage.zero_stage = s.zero_stage;
    for (const int device : s.devices) {
      if (stage.units.empty() || s.zero_stage > 1) stage.units.push_back({{}, s.microbatches});
      planner::RankPlan& rank = stage.units.back().ranks.emplace_back();
      rank.device = job.devices[device].id;
      rank.shard_ratio = 1.0 / static_cast<double>(s.devices.size());
      rank.tp_share = s.zero_stage > 1 ? 1 : rank.shard_ratio;
    }
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
