// All of the training state in host memory, beside the same job with all of it on the device: GPT-2 of 24 layers in float32 on
// one device of F FLOP/s whose host link carries L bytes a second, T tokens a step. What it costs follows from F / (T L): a step
// computes 6 T FLOPs an element, and copies 40 bytes an element, 28 of them behind the backward where gradients are clipped.
// Widths are a sixteenth of GPT-2's of 24 layers, the vocabulary too, so that parts of the state are as large as there.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/plan/each_rank.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/engine_job.h"
#include "tests/bench/engine_on_time.h"

namespace motley::engine {

inline constexpr double kLeastOfSpeed = 0.9, kDeclaredRatio = 60;

struct StateWay {
  std::string name;
  OffloadKinds kinds;
  bool in_turn = false;
};

class HostStateBench {
 public:
  HostStateBench(const std::string& text, bench::Report* report)
      : report_(*report), job_(Job(text)), pairs_("state, in memory", job_, For({"in memory", {}})) {}

  // `over`: one over F / (T L).
  void Measure(const StateWay& way, double over) {
    const std::string name = Name(way, over);
    const Pairs::Pair pair = pairs_.With(name, JobFor(way, over), For(way));
    if (over == kDeclaredRatio) {
      report_.AddGoal(name + ": speed / in memory", 1 / pair.ratio(), "1", kLeastOfSpeed, bench::Limit::kAtLeast);
    } else {
      report_.Add(name + ": speed / in memory", 1 / pair.ratio(), "1");
    }
    report_.Add(name + ": memory / all on the device",
                static_cast<double>(pair.step.peak_bytes) / static_cast<double>(pair.beside.peak_bytes), "1");
    AddNear(&report_, name + ": measured / simulated", pair.step.of_simulated(), 0.02);
    AddLateness(&report_, name, std::max(pair.step.lateness, pair.beside.lateness));
  }

  void Simulate(const StateWay& way, double over) {
    const double with = Simulated(JobFor(way, over), way), without = Simulated(job_, {"in memory", {}});
    report_.Add(Name(way, over) + ": simulated speed / in memory", without / with, "1");
  }

 private:
  static BenchJob Job(const std::string& text) {
    constexpr int64_t kHidden = 64, kLayers = 24, kSeqLen = 16;
    constexpr double kFlops = 0.35e9;
    ModelShape model = BenchModel(kHidden, kLayers, kSeqLen);
    model.vocab_size = 50257 / 16;
    model.tie_embeddings = true;
    BenchJob job = MakeJob(text, model, kMicrobatches * kSamples, /*steps=*/6);
    job.devices = {EmulatedDevice("n0/gpu0", kFlops, 50e6)};
    job.devices[0].node_host_memory_bytes = int64_t{1} << 30;
    return job;
  }
  BenchJob JobFor(const StateWay& way, double over) const {
    BenchJob job = job_;
    const auto tokens = static_cast<double>(job.config.training.global_batch_size * job.config.training.seq_len);
    job.devices[0].host_link_bytes_per_second = job.devices[0].flops_per_second * over / tokens;
    if (way.in_turn) job.config.training.max_norm = 0;
    return job;
  }
  static PlanFor For(const StateWay& way) {
    return [way](const BenchJob& job) {
      BenchStage stage;
      for (int64_t layer = 0; layer < job.model.num_layers; ++layer) stage.ministages.push_back({layer, layer});
      stage.ranks = {{0, std::vector<int64_t>(kMicrobatches, kSamples), 1}};
      planner::Plan plan = PlanOf(job, planner::ScheduleFamily::kLayered, {stage});
      planner::ForEachRank(plan, [&](planner::RankPlan& rank) { rank.offload = way.kinds; });
      if (way.in_turn) plan.optimizer_steps = planner::OptimizerSteps::kInTurn;
      return PlannedAs(job, plan);
    };
  }
  static double Simulated(const BenchJob& job, const StateWay& way) { return For(way)(job).result.plan.predicted.step_seconds; }
  static std::string Name(const StateWay& way, double over) {
    return absl::StrCat("state, ", way.name, ", F / (T L) = 1/", over);
  }

  static constexpr int64_t kMicrobatches = 2, kSamples = 3;

  bench::Report& report_;
  const BenchJob job_;
  Pairs pairs_;
};

inline void MeasureHostState(const std::string& text, bench::Report* report) {
  constexpr OffloadKinds kAll = {.parameters = true, .gradients = true, .optimizer = true};
  // In turn no gradient waits.
  const StateWay all = {"all, clipped", kAll}, in_turn = {"all, in turn", {.parameters = true, .optimizer = true}, true};
  HostStateBench bench(text, report);
  for (const StateWay& way : {all, in_turn}) {
    for (const double over : {kDeclaredRatio, 240.0, 15.0}) bench.Measure(way, over);
  }
  for (const StateWay& way : {all,
                              in_turn,
                              {"the optimizer, clipped", {.optimizer = true}},
                              {"the optimizer and gradients, clipped", {.gradients = true, .optimizer = true}},
                              {"parameters, clipped", {.parameters = true}},
                              {"parameters, in turn", {.parameters = true}, true}}) {
    for (const double over : {480, 240, 120, 60, 30, 15}) bench.Simulate(way, over);
  }
}

}  // namespace motley::engine
