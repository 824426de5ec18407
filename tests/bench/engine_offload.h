// Inputs of layers that wait in host memory, beside the same plan without, over host links declared so that a copy takes this
// part of the layer's forward: what hides costs nothing, and where the link is slower the step is the simulated one. A copy comes
// back beside three times as much compute.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/plan/each_rank.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"

namespace motley::engine {

inline constexpr double kMostOverWithout = 1.015, kMostOverSlowLinks = 1.05, kMostOffPrediction = 1.02;

struct OffloadCase {
  std::string name;
  std::vector<double> speeds;  // of devices, each a node
  std::vector<BenchStage> stages;
};

// 24 layers; on a device of speed 1 a layer's forward of one sample takes 5 ms.
inline BenchJob OffloadJob(const std::string& text, const OffloadCase& c, int64_t global_batch, double copy_over_forward) {
  constexpr double kForward = 5e-3, kLaunch = 0.4e-3, kLinks = 50e6;
  BenchJob job = MakeJob(text, BenchModel(/*hidden=*/64, /*layers=*/24, /*seq_len=*/16), global_batch, /*steps=*/6);
  const double flops = ForwardFlops(job.model, UnitKind::kLayer, 1, job.config.training.seq_len) / (kForward - kLaunch);
  const auto input_bytes = static_cast<double>(BoundaryBytes(job.model, 1, job.config.training.seq_len, DType::kFloat32));
  for (size_t d = 0; d < c.speeds.size(); ++d) {
    DeviceDescription& device =
        job.devices.emplace_back(EmulatedDevice(absl::StrCat("n", d, "/gpu0"), c.speeds[d] * flops, kLinks));
    device.launch = absl::Seconds(kLaunch);
    device.host_link_bytes_per_second = input_bytes * c.speeds[d] / (copy_over_forward * kForward);
    device.node_host_memory_bytes = int64_t{1} << 30;
  }
  return job;
}

inline Planned OffloadPlan(const BenchJob& job, const OffloadCase& c, bool offload) {
  planner::Plan plan = PlanOf(job, planner::ScheduleFamily::kLayered, c.stages, planner::OpSet::All());
  planner::ForEachRank(plan, [&](planner::RankPlan& rank) { rank.offload.activations = offload; });
  return PlannedAs(job, plan);
}

inline void MeasureOffloadCase(const std::string& text, const OffloadCase& c, bench::Report* report) {
  int64_t batch = 0;
  for (const BenchRank& rank : c.stages[0].ranks) batch += static_cast<int64_t>(rank.microbatches.size());
  double without_seconds = 0;
  for (const double ratio : {0.5, 0.7, 1.3}) {
    const BenchJob job = OffloadJob(text, c, batch, ratio);
    const auto seconds = [&](bool offload) {
      const Planned planned = OffloadPlan(job, c, offload);
      const double simulated = planned.result.plan.predicted.step_seconds;
      const Trained trained = Train(job, planned);
      const std::string what = offload ? absl::StrCat("copies ", ratio, " of a forward") : "without";
      std::fprintf(stderr, "offload, %s, %s: %.1f ms, simulated %.1f ms, host late by %.2f %%\n", c.name.c_str(), what.c_str(),
                   trained.step_seconds * 1e3, simulated * 1e3, trained.lateness * 100);
      report->AddGoal(absl::StrCat("offload, ", c.name, ", ", what, ": measured / simulated"), trained.step_seconds / simulated,
                      "1", ratio > 1 ? kMostOverSlowLinks : kMostOffPrediction);
      return trained.step_seconds;
    };
    if (without_seconds == 0) without_seconds = seconds(false);
    const std::string name = absl::StrCat("offload, ", c.name, ", copies ", ratio, " of a forward: step / without");
    const double over = seconds(true) / without_seconds;
    ratio > 1 ? report->Add(name, over, "1") : report->AddGoal(name, over, "1", kMostOverWithout);
  }
}

inline void MeasureOffload(const std::string& text, bench::Report* report) {
  const auto each = [](int64_t first, int64_t step) {
    std::vector<planner::LayerRange> ministages;
    for (int64_t layer = first; layer < 24; layer += step) ministages.push_back({layer, layer});
    return ministages;
  };
  const auto samples = [](size_t count) { return std::vector<int64_t>(count, 1); };
  const std::vector<planner::LayerRange> all = {{0, 23}}, early = {{0, 5}, {12, 17}}, late = {{6, 11}, {18, 23}};
  for (const OffloadCase& c : std::vector<OffloadCase>{
           {"one device", {1}, {{each(0, 1), {{0, samples(6), 1}}}}},
           {"a group of three unlike",
            {1, 0.5, 0.25},
            {{all, {{0, samples(8), 0.4}, {1, samples(4), 0.3}, {2, samples(2), 0.3}}}}},
           {"two groups of two ministages",
            {1, 0.5, 1, 0.5},
            {{early, {{0, samples(8), 0.5}, {1, samples(4), 0.5}}}, {late, {{2, samples(8), 0.5}, {3, samples(4), 0.5}}}}}}) {
    MeasureOffloadCase(text, c, report);
  }
}

}  // namespace motley::engine
