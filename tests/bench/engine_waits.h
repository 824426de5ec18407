// A fast pipeline beside one that takes three times as long: whether it computes as if it were alone, and whether what it then
// waits for is sums. From the spans of its ranks.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/program/step_spans.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_replicas.h"

namespace motley::engine {

inline constexpr double kMostOverAlone = 1.02, kLeastInSums = 0.98;

// What a rank waits for between its last backward and the optimizer, in seconds.
struct WaitAtEnd {
  double all = 0;
  double in_sums = 0;  // over pipelines, and in the exchange of scalars
};

inline bool IsSum(const Operation& op) {
  return std::holds_alternative<ReduceScatter>(op) || std::holds_alternative<ReduceScalars>(op);
}

inline WaitAtEnd WaitOf(const Program& program, const std::vector<InstructionSpan>& spans) {
  absl::Duration computed, optimizer, in_sums;
  for (size_t i = 0; i < spans.size(); ++i) {
    const Operation& op = program.instructions[i].op;
    if (std::holds_alternative<Backward>(op)) computed = std::max(computed, spans[i].end);
    if (std::holds_alternative<OptimizerStep>(op)) optimizer = spans[i].begin;
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    const absl::Duration begin = std::max(spans[i].begin, computed);
    if (IsSum(program.instructions[i].op)) in_sums += std::max(spans[i].end - begin, absl::ZeroDuration());
  }
  return {absl::ToDoubleSeconds(optimizer - computed), absl::ToDoubleSeconds(in_sums)};
}

// Of a pipeline's ranks; medians of the steps.
struct PipelineSpan {
  double seconds = 0;  // from its first backward to its last
  WaitAtEnd wait;      // of its ranks, one after another
};

// Forwards before it wait for parameters, and so for the optimizers of the step before.
inline double SecondsOfBackwards(const planner::MeasuredStep& step, int pipeline) {
  planner::Picoseconds begin = step.measured.end, end = 0;
  for (size_t t = 0; t < step.graph.tasks.size(); ++t) {
    const planner::Task& task = step.graph.tasks[t];
    if (step.graph.actors[task.lanes.front() / kNumLanes].pipeline != pipeline) continue;
    if (task.kind != planner::TaskKind::kBackward) continue;
    begin = std::min(begin, step.measured.spans[t].begin);
    end = std::max(end, step.measured.spans[t].end);
  }
  return planner::ToSeconds(end - begin);
}

inline PipelineSpan SpanOf(const Planned& planned, const Trained& trained, int pipeline) {
  const std::vector<planner::MeasuredStep> steps = MeasuredSteps(planned, trained);
  std::vector<double> seconds, waits, sums;
  for (size_t s = 0; s < steps.size(); ++s) {
    WaitAtEnd of_ranks;
    for (size_t rank = 0; rank < trained.steps.size(); ++rank) {
      if (steps[s].graph.actors[rank].pipeline != pipeline) continue;
      const WaitAtEnd wait = WaitOf(planned.result.programs[rank], trained.steps[rank][s].spans);
      of_ranks.all += wait.all;
      of_ranks.in_sums += wait.in_sums;
    }
    seconds.push_back(SecondsOfBackwards(steps[s], pipeline));
    waits.push_back(of_ranks.all);
    sums.push_back(of_ranks.in_sums);
  }
  return {Median(seconds), {Median(waits), Median(sums)}};
}

inline PipelineSpan SpanAlone(BenchJob job, const Replica& replica) {
  job.config.training.global_batch_size = replica[0].samples();
  const Planned planned = PlannedReplicas(job, {replica});
  return SpanOf(planned, Train(job, planned), 0);
}

inline void MeasureWaitsOf(const std::string& what, const BenchJob& job, const Replica& fast, const Replica& slow,
                           bench::Report* report) {
  const std::string name = "waits, " + what + ": ";
  const double fast_alone = SpanAlone(job, fast).seconds, slow_alone = SpanAlone(job, slow).seconds;
  const Planned planned = PlannedReplicas(job, {fast, slow});
  const Trained trained = Train(job, planned);
  const PipelineSpan of_fast = SpanOf(planned, trained, 0), of_slow = SpanOf(planned, trained, 1);
  std::fprintf(stderr,
               "%sstep %.1f ms; fast pipeline %.1f ms, alone %.1f ms, its ranks then wait %.1f ms, %.1f ms of it in sums; slow "
               "pipeline %.1f ms, alone %.1f ms; host late by %.2f %%\n",
               name.c_str(), trained.step_seconds * 1e3, of_fast.seconds * 1e3, fast_alone * 1e3, of_fast.wait.all * 1e3,
               of_fast.wait.in_sums * 1e3, of_slow.seconds * 1e3, slow_alone * 1e3, trained.lateness * 100);
  report->AddGoal(name + "fast pipeline / alone", of_fast.seconds / fast_alone, "1", kMostOverAlone);
  report->AddGoal(name + "of what it then waits, in sums", of_fast.wait.in_sums / of_fast.wait.all, "1", kLeastInSums,
                  bench::Limit::kAtLeast);
  report->AddGoal(name + "slow pipeline / alone", of_slow.seconds / slow_alone, "1", kMostOverAlone);
}

// A layer's gather takes a quarter of its forward on a fast device.
inline BenchJob UnlikeSpeedsJob(const std::string& text, int64_t global_batch) {
  constexpr double kFlops = 0.1e9, kLinks = 50e6;
  BenchJob job = MakeJob(text, BenchModel(/*hidden=*/64, /*layers=*/4, /*seq_len=*/8), global_batch, /*steps=*/4);
  for (const auto& [id, part] : {std::pair("n0/gpu0", 1.0), std::pair("n0/gpu1", 1.0), std::pair("n1/gpu0", 1.0),
                                 std::pair("n2/gpu0", 1.0 / 3), std::pair("n3/gpu0", 1.0 / 3)}) {
    job.devices.push_back(EmulatedDevice(id, part * kFlops, kLinks));
  }
  return job;
}

inline void MeasureWaits(const std::string& text, bench::Report* report) {
  const BenchJob job = UnlikeSpeedsJob(text, /*global_batch=*/8), uneven = UnlikeSpeedsJob(text, /*global_batch=*/14);
  const std::vector<int64_t> four(4, 1);
  const Replica slow = {{{0, 3}, {3}, four}};
  MeasureWaitsOf("one device and a slow one", job, {{{0, 3}, {0}, four}}, slow, report);
  MeasureWaitsOf("two stages and a slow device", job, {{{0, 1}, {0}, four}, {{2, 3}, {2}, four}}, slow, report);
  MeasureWaitsOf("two stages and two slow ones", job, {{{0, 1}, {0}, four}, {{2, 3}, {2}, four}},
                 {{{0, 0}, {3}, four}, {{1, 3}, {4}, four}}, report);
  MeasureWaitsOf("a unit of two and a slow device", job, {{{0, 3}, {0, 1}, four}}, slow, report);
  MeasureWaitsOf("two that share out all and a slow device", job, {{{0, 3}, {0, 1}, {1, 1}, 3}}, slow, report);
  // As long, in one microbatch instead of two.
  MeasureWaitsOf("a unit of two with one microbatch and a slow device with two", uneven, {{{0, 3}, {0, 1}, {12}}},
                 {{{0, 3}, {3}, {1, 1}}}, report);
}

}  // namespace motley::engine
