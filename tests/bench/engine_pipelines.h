// The textbook's pipelines on equal stages against the right column of docs/simulator.md's table of orders.
//
// The table knows neither embedding, head nor optimizer. The smallest text model has them, so their declared times are taken off
// what was measured: the head's of every microbatch (its stage is the one that the others wait for), the embedding's of one, the
// optimizer's of the last stage.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"

namespace motley::engine {

inline constexpr double kMostOverFormula = 1.02;
inline constexpr int kStages = 4, kLayersOfStage = 2;

inline BenchJob EqualStagesJob(const std::string& text, int64_t microbatches) {
  constexpr double kFlops = 0.6e9, kLinks = 10e9;  // hand-overs take microseconds
  BenchJob job = MakeJob(text, BenchModel(/*hidden=*/256, kStages * kLayersOfStage, /*seq_len=*/16), microbatches, /*steps=*/5);
  for (int s = 0; s < kStages; ++s) job.devices.push_back(EmulatedDevice(absl::StrCat("n", s, "/gpu0"), kFlops, kLinks));
  return job;
}

// `ministages` of equal size a stage, round robin.
inline Planned EqualStages(const BenchJob& job, planner::ScheduleFamily schedule, int ministages) {
  const std::vector<int64_t> microbatches(job.config.training.global_batch_size, 1);
  const int64_t layers = kLayersOfStage / ministages;
  std::vector<BenchStage> stages;
  for (int s = 0; s < kStages; ++s) {
    BenchStage& stage = stages.emplace_back();
    for (int i = 0; i < ministages; ++i) {
      const int64_t first = (i * kStages + s) * layers;
      stage.ministages.push_back({first, first + layers - 1});
    }
    stage.ranks = {{s, microbatches, 1}};
  }
  return PlannedAs(job, PlanOf(job, schedule, stages));
}

// Declared seconds that the table does not count.
inline double UncountedSeconds(const BenchJob& job) {
  const DeviceDescription& device = job.devices[0];
  double elements = 0;
  const std::vector<UnitSpec> layout = ParameterLayout(job.model);
  for (size_t u = layout.size() - 1 - kLayersOfStage; u < layout.size(); ++u)
    elements += static_cast<double>(layout[u].num_elements);
  return static_cast<double>(job.config.training.global_batch_size) * DeclaredSeconds(job, device, UnitKind::kHead, 1).sum() +
         DeclaredSeconds(job, device, UnitKind::kEmbedding, 1).sum() +
         elements * kOptimizerFlopsPerElement / device.flops_per_second;
}

inline void MeasurePipelines(const std::string& text, bench::Report* report) {
  using planner::ScheduleFamily;
  struct Order {
    ScheduleFamily schedule;
    int ministages;
  };
  for (const int64_t microbatches : {kStages, 2 * kStages}) {
    const BenchJob job = EqualStagesJob(text, microbatches);
    const double stage = kLayersOfStage * DeclaredSeconds(job, job.devices[0], UnitKind::kLayer, 1).sum();  // f + b
    for (const Order& order : {Order{ScheduleFamily::kGPipe, 1}, Order{ScheduleFamily::k1F1B, 1},
                               Order{ScheduleFamily::kInterleaved, 2}, Order{ScheduleFamily::kLayered, 2}}) {
      const Planned planned = EqualStages(job, order.schedule, order.ministages);
      const double bubble = static_cast<double>(kStages - 1) / order.ministages;
      const double formula = (static_cast<double>(microbatches) + bubble) * stage, uncounted = UncountedSeconds(job);
      const Trained trained = Train(job, planned);
      const std::string name = absl::StrCat("pipeline, ", std::string(planner::ScheduleName(order.schedule)), " of ", kStages,
                                            " stages, ", microbatches, " microbatches");
      std::fprintf(stderr, "%s: %.1f ms, of it %.1f ms uncounted, formula %.1f ms, simulated %.1f ms, host late by %.2f %%\n",
                   name.c_str(), trained.step_seconds * 1e3, uncounted * 1e3, formula * 1e3,
                   planned.result.plan.predicted.step_seconds * 1e3, trained.lateness * 100);
      report->AddGoal(name + ": measured / formula", (trained.step_seconds - uncounted) / formula, "1", kMostOverFormula);
    }
  }
}

}  // namespace motley::engine
