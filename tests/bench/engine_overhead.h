// What the engine adds to a plan: ten plans on five unlike devices, each one's measured step over its simulated one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"

namespace motley::engine {

inline constexpr double kMostOverhead = 1.03;

// Three nodes, as the demo's: compute and links such that either may be what a plan waits for.
inline BenchJob UnlikeDevicesJob(const std::string& text) {
  constexpr double kAllFlops = 1.8e9, kLinks = 20e6;
  BenchJob job = MakeJob(text, BenchModel(/*hidden=*/64, /*layers=*/6, /*seq_len=*/32), /*global_batch=*/24, /*steps=*/5);
  for (const auto& [id, part] : {std::pair("n1/gpu0", 0.36), std::pair("n1/gpu1", 0.24), std::pair("n2/gpu0", 0.2),
                                 std::pair("n2/gpu1", 0.12), std::pair("n3/gpu0", 0.08)}) {
    job.devices.push_back(EmulatedDevice(id, part * kAllFlops, kLinks));
    job.devices.back().launch = absl::Milliseconds(1);
  }
  return job;
}

struct NamedPlan {
  std::string name;
  Planned planned;
};

inline std::vector<NamedPlan> TenPlans(const BenchJob& job) {
  using planner::ScheduleFamily;
  const auto as = [&](ScheduleFamily schedule, const std::vector<BenchStage>& stages) {
    return PlannedAs(job, PlanOf(job, schedule, stages));
  };
  const std::vector<BenchRank> even = {{0, {3, 2}, 0.2}, {1, {3, 2}, 0.2}, {2, {3, 2}, 0.2}, {3, {3, 2}, 0.2}, {4, {3, 1}, 0.2}};
  const auto by_speed = [](const std::vector<double>& shares) {
    return std::vector<BenchRank>{
        {0, {3, 3, 3}, shares[0]}, {1, {3, 3}, shares[1]}, {2, {3, 2}, shares[2]}, {3, {3}, shares[3]}, {4, {1}, shares[4]}};
  };
  // A stage a node, layers by the node's speed.
  const auto stages = [](const std::vector<std::vector<planner::LayerRange>>& layers, int zero_stage) {
    return std::vector<BenchStage>{{layers[0], {{0, {4, 4, 4}, 0.6}, {1, {4, 4, 4}, 0.4}}, zero_stage},
                                   {layers[1], {{2, {4, 4, 4}, 0.5}, {3, {4, 4, 4}, 0.5}}, zero_stage},
                                   {layers[2], {{4, {4, 4, 4, 4, 4, 4}, 1}}, zero_stage}};
  };
  const std::vector<std::vector<planner::LayerRange>> whole = {{{0, 2}}, {{3, 4}}, {{5, 5}}};
  const std::vector<std::vector<planner::LayerRange>> halves = {{{0, 0}, {3, 3}}, {{1, 1}, {4, 4}}, {{2, 2}, {5, 5}}};
  const std::vector<planner::LayerRange> all = {{0, 5}};
  std::vector<NamedPlan> plans;
  plans.push_back({"even", PlannedBy(job, "even")});
  plans.push_back({"cephalo", PlannedBy(job, "cephalo")});
  plans.push_back({"fsdp, ZeRO 3", as(ScheduleFamily::k1F1B, {{all, even, 3}})});
  plans.push_back({"fsdp, ZeRO 2", as(ScheduleFamily::k1F1B, {{all, even, 2}})});
  plans.push_back({"data parallel, ZeRO 0", as(ScheduleFamily::k1F1B, {{all, by_speed({0.2, 0.2, 0.2, 0.2, 0.2}), 0}})});
  plans.push_back({"uneven shards", as(ScheduleFamily::kLayered, {{all, by_speed({0, 0.1, 0.2, 0, 0.7}), 3}})});
  plans.push_back({"gpipe, 3 stages", as(ScheduleFamily::kGPipe, stages(whole, 1))});
  plans.push_back({"1f1b, 3 stages", as(ScheduleFamily::k1F1B, stages(whole, 2))});
  plans.push_back({"layered, 3 stages of 2 ministages", as(ScheduleFamily::kLayered, stages(halves, 3))});
  // Megatron's schedule wants as many microbatches on every rank, a multiple of the stages.
  plans.push_back({"interleaved, 3 stages of 2 ministages",
                   as(ScheduleFamily::kInterleaved, {{halves[0], {{0, {2, 2, 2, 2, 2, 2}, 0.6}, {1, {2, 2, 2, 2, 2, 2}, 0.4}}, 2},
                                                     {halves[1], {{2, {2, 2, 2, 2, 2, 2}, 0.5}, {3, {2, 2, 2, 2, 2, 2}, 0.5}}, 2},
                                                     {halves[2], {{4, {4, 4, 4, 4, 4, 4}, 1}}, 2}})});
  return plans;
}

inline void MeasureOverhead(const std::string& text, bench::Report* report) {
  const BenchJob job = UnlikeDevicesJob(text);
  for (const NamedPlan& plan : TenPlans(job)) {
    const double simulated = plan.planned.result.plan.predicted.step_seconds;
    const Trained trained = Train(job, plan.planned);
    std::fprintf(stderr, "overhead, %s: %.1f ms, simulated %.1f ms, host late by %.2f %%\n", plan.name.c_str(),
                 trained.step_seconds * 1e3, simulated * 1e3, trained.lateness * 100);
    report->AddGoal("overhead, " + plan.name + ": measured / simulated", trained.step_seconds / simulated, "1", kMostOverhead);
  }
}

}  // namespace motley::engine
