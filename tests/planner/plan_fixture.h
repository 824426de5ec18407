// Plans for the language's tests: one of one stage with a placement, as the live planner makes it, and one that uses all of the
// language.
#pragma once

#include "common/model/parameters.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/plan.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/hand_plan.h"

namespace motley::planner {

inline RankPlan MakeRank(const std::string& device, const std::string& model, double shard, double tp = 1,
                         OpSet recompute = OpSet::None()) {
  RankPlan rank;
  rank.device = DeviceId(device);
  rank.device_model = model;
  rank.shard_ratio = shard;
  rank.tp_share = tp;
  rank.recompute = recompute;
  return rank;
}

// Cephalo on four of five devices: batch 11.
inline Plan OneStagePlan(const ModelShape& model) {
  return HandPlan(MakeInput(model, MixedDevices(), 11), "cephalo",
                  {{0, 6, 4, true, 0.5}, {1, 3, 3, false, 0.2}, {2, 0, 0, false, 0.3}, {3, 2, 1, false, 0}},
                  {{DeviceId("n3/gpu0"), "slow"}});
}

// Two pipelines for SmallModel's four layers: one of two stages with two ministages each, the first with an unequal
// tensor-parallel unit, the second with two data-parallel members; and one of a single stage, of which one device only stores.
// Batch 12 = 8 + 4.
inline Plan FullPlan() {
  Plan plan;
  plan.strategy = "auto";
  plan.cluster = "three boxes";
  plan.cluster_file = "lab files/three.toml";
  plan.model = "small";
  plan.global_batch = 12;
  plan.seq_len = 32;
  plan.dtype = DType::kFloat16;
  plan.schedule = ScheduleFamily::kLayered;
  plan.pipelines_zero_stage = 1;
  StagePlan first, second, whole;
  first.ministages = {{0, 0}, {2, 2}};
  first.zero_stage = 2;
  first.units = {{{MakeRank("a/gpu0", "A100-40GB", 0.75, 0.75),
                   MakeRank("a/gpu1", "T4", 0.25, 0.25, OpSet().With(Op::kNorm1).With(Op::kActivation))},
                  {4, 4}}};
  first.units[0].ranks[1].offload.activations = true;
  second.ministages = {{1, 1}, {3, 3}};
  second.units = {{{MakeRank("b/gpu0", "RTX 2080 Ti", 1.0 / 3)}, {2, 3}}, {{MakeRank("b/gpu1", "RTX 2080 Ti", 2.0 / 3)}, {3}}};
  second.units[0].ranks[0].offload.parameters = second.units[0].ranks[0].offload.optimizer = true;
  whole.ministages = {{0, 3}};
  whole.zero_stage = 1;
  whole.units = {{{MakeRank("c/gpu0", "P40", 0.25, 1, OpSet::All())}, {3, 1}}, {{MakeRank("c/gpu1", "P40", 0.75)}, {}}};
  plan.pipelines = {{{first, second}}, {{whole}}};
  plan.unused = {{DeviceId("c/gpu2"), "no room: \"context\" alone"}, {DeviceId("c/gpu3"), "excluded\nby the user"}};
  plan.predicted.step_seconds = 0.1 + 0.2;
  plan.predicted.tokens_per_second = 1234.5;
  plan.predicted.binding_constraint = "compute of a/gpu1";
  plan.predicted.mfu = 0.41;
  plan.predicted.hfu = 0.55;
  plan.predicted.idle_share = 0.07;
  plan.predicted.tokens_per_dollar = 3e6;
  plan.predicted.lower_bound_seconds = 0.25;
  plan.predicted.estimated = true;
  plan.predicted.low_seconds = 0.28;
  plan.predicted.high_seconds = 0.35;
  plan.predicted.notes = {"T4: estimated from P40"};
  RankPrediction& predicted = plan.pipelines[0].stages[0].units[0].ranks[0].predicted;
  predicted.busy_seconds = 1e-3 / 3;
  predicted.memory.parameters = 100;
  predicted.memory.saved = 23;
  predicted.memory.host = 7;
  predicted.memory.slots = 5;
  predicted.most = predicted.memory;
  predicted.most.workspace = 40;
  predicted.waits = {.inputs = 4, .optimizer = 3};
  predicted.peak_bytes = predicted.memory.total();
  return plan;
}

// FullPlan under 1F1B: one ministage a stage; the first stage keeps three microbatches, one more than the schedule would.
inline Plan InTurnPlan() {
  Plan plan = FullPlan();
  plan.schedule = ScheduleFamily::k1F1B;
  plan.pipelines[0].stages[0].ministages = {{0, 1}};
  plan.pipelines[0].stages[1].ministages = {{2, 3}};
  plan.pipelines[0].stages[0].in_flight = 3;
  return plan;
}

// Everything that defines a plan, as text to compare: JSON without predictions.
inline std::string Definition(Plan plan) {
  plan.predicted = {};
  ForEachRank(plan, [](RankPlan& rank) { rank.predicted = {}; });
  return ToJson(plan);
}

}  // namespace motley::planner
