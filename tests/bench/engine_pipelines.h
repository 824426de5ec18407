// The textbook's pipelines on equal stages against the right column of docs/inside/simulator.md's table of orders, and against
// the simulated step.
//
// The table knows neither embedding, head nor optimizer. The smallest text model has them, so their declared times are taken off
// what was measured: the head's of every microbatch (its stage is the one that the others wait for), the embedding's of one, the
// optimizer's of the last stage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"
#include "planner/plan/schedule_family.h"
#include "planner/plan/virtual_stages.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"

namespace motley::engine {

inline constexpr double kMostOverOrder = 1.02;
inline constexpr int kStages = 4, kLayersOfStage = 2;

inline BenchJob EqualStagesJob(const std::string& text, int64_t microbatches) {
  constexpr double kFlops = 0.6e9, kLinks = 10e9;  // hand-overs take microseconds
  BenchJob job = MakeJob(text, BenchModel(/*hidden=*/256, kStages * kLayersOfStage, /*seq_len=*/16), microbatches, /*steps=*/5);
  for (int s = 0; s < kStages; ++s) job.devices.push_back(EmulatedDevice(absl::StrCat("n", s, "/gpu0"), kFlops, kLinks));
  return job;
}

// `ministages` of equal size a stage, laid as the family has them.
inline Planned EqualStages(const BenchJob& job, planner::ScheduleFamily schedule, int ministages) {
  const std::vector<int64_t> microbatches(job.config.training.global_batch_size, 1);
  const int64_t layers = kLayersOfStage / ministages;
  std::vector<BenchStage> stages(kStages);
  int64_t first = 0;
  for (const planner::VirtualStage& at : planner::MappedStages(planner::TraitsOf(schedule).map, kStages, ministages)) {
    stages[at.stage].ministages.push_back({first, first + layers - 1});
    first += layers;
  }
  for (int s = 0; s < kStages; ++s) stages[s].ranks = {{s, microbatches, 1}};
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

struct BenchOrder {
  planner::ScheduleFamily schedule;
  int ministages;
  std::optional<double> bubble_seconds;  // by the table; none: it says nothing of so few microbatches
};

inline std::vector<BenchOrder> OrdersOf(const UnitSeconds& layer, int64_t microbatches) {
  using planner::ScheduleFamily;
  const double fills = kStages - 1, stage = kLayersOfStage * layer.sum();  // f + b
  const double h1 = fills * kLayersOfStage * (layer.forward + layer.backward_input - layer.backward_weight);
  std::vector<BenchOrder> orders = {{ScheduleFamily::kGPipe, 1, fills * stage},
                                    {ScheduleFamily::k1F1B, 1, fills * stage},
                                    {ScheduleFamily::kInterleaved, 2, fills * stage / 2},
                                    {ScheduleFamily::kLayered, 2, fills * stage / 2},
                                    {ScheduleFamily::kZeroBubble, 1, h1},
                                    {ScheduleFamily::kZeroBubbleV, 2, {}}};
  // The table's f = b_in = b_w is a third of what a layer takes; its own three differ by some percent.
  if (microbatches >= 2 * kStages - 1) orders.back().bubble_seconds = fills * stage / 6;
  return orders;
}

inline void MeasureOrder(const BenchJob& job, const BenchOrder& order, bench::Report* report) {
  const int64_t microbatches = job.config.training.global_batch_size;
  const double stage = kLayersOfStage * DeclaredSeconds(job, job.devices[0], UnitKind::kLayer, 1).sum();
  const Planned planned = EqualStages(job, order.schedule, order.ministages);
  const double simulated = planned.result.plan.predicted.step_seconds, uncounted = UncountedSeconds(job);
  const Trained trained = Train(job, planned);
  const std::string name = absl::StrCat("pipeline, ", std::string(planner::ScheduleName(order.schedule)), " of ", kStages,
                                        " stages, ", microbatches, " microbatches");
  std::fprintf(stderr, "%s: %.1f ms, of it %.1f ms uncounted, simulated %.1f ms, host late by %.2f %%\n", name.c_str(),
               trained.step_seconds * 1e3, uncounted * 1e3, simulated * 1e3, trained.lateness * 100);
  report->AddGoal(name + ": measured / simulated", trained.step_seconds / simulated, "1", kMostOverOrder);
  if (!order.bubble_seconds) return;
  const double formula = static_cast<double>(microbatches) * stage + *order.bubble_seconds;
  report->AddGoal(name + ": measured / formula", (trained.step_seconds - uncounted) / formula, "1", kMostOverOrder);
}

inline void MeasurePipelines(const std::string& text, bench::Report* report) {
  for (const int64_t microbatches : {kStages, 2 * kStages}) {
    const BenchJob job = EqualStagesJob(text, microbatches);
    const UnitSeconds layer = DeclaredSeconds(job, job.devices[0], UnitKind::kLayer, 1);
    for (const BenchOrder& order : OrdersOf(layer, microbatches)) MeasureOrder(job, order, report);
  }
}

}  // namespace motley::engine
