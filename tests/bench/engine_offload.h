// What waits in host memory, beside the same plan without, over host links declared so that a ministage's copies take this part
// of its compute at most, in either pass: what hides costs nothing, and where the link is slower the step is the simulated one
// and the device holds no more. Everything is recomputed: a backward takes three times a forward, and of parameters in turn it
// has three times the copies.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"
#include "planner/plan/each_rank.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"
#include "tests/bench/engine_on_time.h"

namespace motley::engine {

inline constexpr double kMostOffSlowLinks = 0.05, kMostOffPrediction = 0.02;

struct OffloadCase {
  std::string name;
  std::vector<double> speeds;  // of devices, each a node
  std::vector<BenchStage> stages;
  bool one_root = false;  // or all of one node, whose devices share a link to the host
};

// What waits, and how the units are stepped.
struct OffloadWay {
  std::string name;
  OffloadKinds kinds;
  bool in_turn = false;
  double most_over_without = 0;  // where copies hide; 0 = they need not
};

// 24 layers; on a device of speed 1 a layer's forward of one sample takes 5 ms.
inline BenchJob OffloadJob(const std::string& text, const OffloadCase& c) {
  constexpr double kForward = 5e-3, kLaunch = 0.4e-3, kLinks = 50e6;
  int64_t batch = 0;
  for (const BenchRank& rank : c.stages[0].ranks) batch += static_cast<int64_t>(rank.microbatches.size());
  BenchJob job = MakeJob(text, BenchModel(/*hidden=*/64, /*layers=*/24, /*seq_len=*/16), batch, /*steps=*/6);
  const double flops = ForwardFlops(job.model, UnitKind::kLayer, 1, job.config.training.seq_len) / (kForward - kLaunch);
  for (size_t d = 0; d < c.speeds.size(); ++d) {
    const std::string id = c.one_root ? absl::StrCat("n0/gpu", d) : absl::StrCat("n", d, "/gpu0");
    DeviceDescription& device = job.devices.emplace_back(EmulatedDevice(id, c.speeds[d] * flops, kLinks));
    device.launch = absl::Seconds(kLaunch);
    device.node_host_memory_bytes = int64_t{1} << 30;
    if (c.one_root) device.host_root = 0;
  }
  return job;
}

// Of a rank's compute in a forward while a byte is copied: of a layer's inputs, or of what it owns of the fullest ministage.
inline double SecondsAByte(const BenchJob& job, const OffloadCase& c, const BenchStage& stage, const BenchRank& rank,
                           bool of_state) {
  const auto forward = [&](UnitKind unit) { return DeclaredSeconds(job, job.devices[rank.device], unit, 1).forward; };
  const double links = c.one_root ? static_cast<double>(c.speeds.size()) : 1;
  const auto input = static_cast<double>(BoundaryBytes(job.model, 1, job.config.training.seq_len, DType::kFloat32));
  if (!of_state) return forward(UnitKind::kLayer) / input / links;
  const std::vector<UnitSpec> layout = ParameterLayout(job.model);
  const auto microbatches = static_cast<double>(rank.microbatches.size());
  double least = 0;
  for (const planner::LayerRange& ministage : stage.ministages) {
    const auto layers = static_cast<double>(ministage.layers());
    double seconds = layers * forward(UnitKind::kLayer), elements = layers * static_cast<double>(layout[1].num_elements);
    if (ministage.first == 0) {
      seconds += forward(UnitKind::kEmbedding);
      elements += static_cast<double>(layout.front().num_elements);
    }
    if (ministage.last == job.model.num_layers - 1) {
      seconds += forward(UnitKind::kHead);
      elements += static_cast<double>(layout.back().num_elements);
    }
    const double a_byte = microbatches * seconds / (4 * rank.share * elements);
    least = least == 0 ? a_byte : std::min(least, a_byte);
  }
  return least / links;
}

inline BenchJob WithHostLinks(BenchJob job, const OffloadCase& c, const OffloadWay& way, double ratio) {
  for (const BenchStage& stage : c.stages) {
    for (const BenchRank& rank : stage.ranks) {
      const double seconds = SecondsAByte(job, c, stage, rank, way.kinds.takes_state());
      job.devices[rank.device].host_link_bytes_per_second = 1 / (ratio * seconds);
    }
  }
  if (way.in_turn) job.config.training.max_norm = 0;
  return job;
}

inline PlanFor OffloadPlan(const OffloadCase& c, const OffloadWay& way) {
  return [c, way](const BenchJob& job) {
    planner::Plan plan = PlanOf(job, planner::ScheduleFamily::kLayered, c.stages, planner::OpSet::All());
    planner::ForEachRank(plan, [&](planner::RankPlan& rank) { rank.offload = way.kinds; });
    if (way.in_turn) plan.optimizer_steps = planner::OptimizerSteps::kInTurn;
    return PlannedAs(job, plan);
  };
}

class OffloadBench {
 public:
  OffloadBench(const std::string& text, const OffloadCase& c, bench::Report* report)
      : case_(c), job_(OffloadJob(text, c)), report_(*report), pairs_(Name({"without", {}}), job_, OffloadPlan(c, {})) {}

  // Links that are fast enough, and slow ones.
  void MeasureAt(const OffloadWay& way, const std::vector<double>& ratios) {
    int64_t most_bytes = 0;
    for (const double ratio : ratios) {
      const std::string name = absl::StrCat(Name(way), ", copies ", ratio, " of the compute");
      const Pairs::Pair pair = pairs_.With(name, WithHostLinks(job_, case_, way, ratio), OffloadPlan(case_, way));
      const bool hides = ratio <= 1 && way.most_over_without > 0;
      hides ? report_.AddGoal(name + ": step / without", pair.ratio(), "1", way.most_over_without)
            : report_.Add(name + ": step / without", pair.ratio(), "1");
      AddNear(&report_, name + ": measured / simulated", pair.step.of_simulated(),
              ratio <= 1 ? kMostOffPrediction : kMostOffSlowLinks);
      AddLateness(&report_, name, std::max(pair.step.lateness, pair.beside.lateness));
      report_.Add(name + ": memory / without", Ratio(pair.step.peak_bytes, pair.beside.peak_bytes), "1");
      if (ratio > 1) report_.AddGoal(name + ": memory / where copies hide", Ratio(pair.step.peak_bytes, most_bytes), "1", 1);
      most_bytes = std::max(most_bytes, pair.step.peak_bytes);
    }
  }

 private:
  std::string Name(const OffloadWay& way) const { return absl::StrCat("offload, ", case_.name, ", ", way.name); }
  static double Ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

  const OffloadCase case_;
  const BenchJob job_;
  bench::Report& report_;
  Pairs pairs_;
};

inline std::vector<OffloadCase> OffloadCases() {
  const auto samples = [](size_t count) { return std::vector<int64_t>(count, 1); };
  std::vector<planner::LayerRange> each;
  for (int64_t layer = 0; layer < 24; ++layer) each.push_back({layer, layer});
  const std::vector<planner::LayerRange> all = {{0, 23}}, early = {{0, 5}, {12, 17}}, late = {{6, 11}, {18, 23}};
  return {
      {"one device", {1}, {{each, {{0, samples(6), 1}}}}},
      {"a group of three unlike", {1, 0.5, 0.25}, {{all, {{0, samples(8), 0.4}, {1, samples(4), 0.3}, {2, samples(2), 0.3}}}}},
      {"two groups of two ministages",
       {1, 0.5, 1, 0.5},
       {{early, {{0, samples(8), 0.5}, {1, samples(4), 0.5}}}, {late, {{2, samples(8), 0.5}, {3, samples(4), 0.5}}}}}};
}

inline void MeasureOffload(const std::string& text, bench::Report* report) {
  const OffloadWay activations = {"activations", {.activations = true}, false, 1.015};
  const OffloadWay in_turn = {"parameters in turn", {.parameters = true}, true, 1.02};
  const OffloadWay clipped = {"parameters, clipped", {.parameters = true}}, optimizer = {"the optimizer", {.optimizer = true}};
  const OffloadWay state = {"parameters and the optimizer", {.parameters = true, .optimizer = true}};
  for (const OffloadCase& c : OffloadCases()) {
    OffloadBench bench(text, c, report);
    for (const OffloadWay& way : {activations, in_turn}) bench.MeasureAt(way, {0.5, 0.7, 1.3});
    for (const OffloadWay& way : {clipped, optimizer}) bench.MeasureAt(way, {0.7});
  }
  const std::vector<int64_t> samples(6, 1);
  OffloadCase two = {"two ranks on one root", {1, 1}, {{{{0, 23}}, {{0, samples, 0.5}, {1, samples, 0.5}}}}, true};
  OffloadBench bench(text, two, report);
  for (const OffloadWay& way : {activations, state}) bench.MeasureAt(way, {0.7});
}

}  // namespace motley::engine
