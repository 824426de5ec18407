// What searches estimate against what plans cost: microseconds a call of EstimatePlan, and its distance from the seconds of the
// classes' graph (Evaluate) and of the ranks' programs (Price), by schedule. Random pipelines whose stages may be unlike, under
// every schedule; and what it would cost to take the schedule that is estimated fastest. docs/inside/simulator.md has the
// figures.
//
//   estimate_bench [--json F] [--pipelines N] [--show yes]     N: default 300; --show: a row a plan
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "planner/cluster/cluster_file.h"
#include "planner/costs/workload.h"
#include "planner/plan/virtual_stages.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "planner/setting/blank_plan.h"
#include "planner/setting/setting.h"
#include "tests/bench/bench_report.h"

namespace motley::planner {
namespace {

using bench::Report;

// Stages of like devices, one node or more each, a pipeline that takes all of the cluster; the same for the same seed.
struct DrawnPipeline {
  std::string toml, model;
  int64_t stages = 1, width = 1, rounds = 1, microbatch = 1;
  int zero_stage = 0;
  bool by_speed = false;       // layers
  std::vector<int64_t> fewer;  // by stage: rounds are so many times fewer, microbatches larger
  std::vector<double> speed;   // by stage
};

class PipelineDrawer {
 public:
  DrawnPipeline Next() {
    constexpr std::array kCards = {"A100-40GB", "V100-16GB", "RTX-3090", "T4"};
    constexpr std::array kSpeeds = {5.0, 2.0, 1.5, 1.0};
    constexpr std::array kStages = {2, 3, 4, 6, 8};
    constexpr std::array kGbit = {10, 25, 100, 200};
    DrawnPipeline drawn;
    drawn.stages = kStages[Below(kStages.size())];
    drawn.width = int64_t{1} << Below(4);
    drawn.rounds = drawn.stages * (int64_t{1} << Below(5));
    drawn.microbatch = int64_t{4} << Below(2);
    drawn.zero_stage = static_cast<int>(Below(4));
    drawn.by_speed = Below(2) == 0;
    drawn.model = std::array{"gpt2-774m", "llama-3b", "gpt-2.7b"}[Below(3)];
    drawn.toml = absl::StrCat("name = \"drawn\"\n[defaults]\nnic_gbit_per_second = ", kGbit[Below(kGbit.size())], "\n");
    const bool alike = Below(3) == 0, line_up = Below(3) > 0;
    size_t card = Below(kCards.size());
    for (int64_t s = 0; s < drawn.stages; ++s) {
      if (!alike) card = Below(kCards.size());
      drawn.speed.push_back(drawn.by_speed ? kSpeeds[card] : 1);
      drawn.fewer.push_back(line_up ? 1 : int64_t{1} << Below(3));
      absl::StrAppend(&drawn.toml, "[[node]]\nname = \"s", s, "\"\ngpus = [{card = \"", kCards[card], "\", count = ", drawn.width,
                      "}]\n");
    }
    return drawn;
  }

 private:
  size_t Below(size_t n) { return random_() % n; }
  std::mt19937_64 random_{17};
};

absl::StatusOr<std::unique_ptr<Setting>> SettingOf(const DrawnPipeline& drawn) {
  auto cluster = ParseCluster(drawn.toml, "drawn");
  auto workload = LoadModel(drawn.model);
  if (!cluster.ok()) return cluster.status();
  if (!workload.ok()) return workload.status();
  workload->global_batch = drawn.rounds * drawn.microbatch * drawn.width;
  workload->seq_len = 512;
  workload->dtype = DType::kFloat16;
  return Setting::Create(*std::move(cluster), *std::move(workload), PlanRequest(), nullptr);
}

// `rounds` virtual stages a stage.
Plan PlanOf(const Setting& setting, const DrawnPipeline& drawn, ScheduleFamily schedule) {
  const ScheduleTraits& traits = TraitsOf(schedule);
  const size_t ministages = traits.ministages > 0 ? traits.ministages : 2, stages = static_cast<size_t>(drawn.stages);
  Plan plan = BlankPlan(setting, "bench", schedule);
  plan.global_batch = setting.workload.global_batch;
  plan.dtype = setting.workload.dtype;
  PipelinePlan& pipeline = plan.pipelines.emplace_back();
  double all = 0, before = 0;
  for (size_t s = 0; s < stages; ++s) all += static_cast<double>(ministages) * drawn.speed[s];
  pipeline.stages.resize(stages);
  for (const VirtualStage& v : MappedStages(traits.map, stages, ministages)) {
    const auto layers = static_cast<double>(setting.workload.model.num_layers);
    const int64_t first = std::llround(layers * before / all);
    before += drawn.speed[v.stage];
    pipeline.stages[v.stage].ministages.push_back({first, std::llround(layers * before / all) - 1});
  }
  for (size_t s = 0; s < stages; ++s) {
    StagePlan& stage = pipeline.stages[s];
    stage.zero_stage = drawn.zero_stage;
    const int64_t fewer = schedule == ScheduleFamily::kInterleaved ? 1 : std::min(drawn.fewer[s], drawn.rounds);
    const int64_t rounds = drawn.rounds / fewer;
    for (int64_t u = 0; u < drawn.width; ++u) {
      RankPlan rank;
      rank.device = setting.cluster.devices[s * static_cast<size_t>(drawn.width) + static_cast<size_t>(u)].id;
      rank.shard_ratio = 1.0 / static_cast<double>(drawn.width);
      std::vector<int64_t> microbatches(static_cast<size_t>(rounds), drawn.microbatch * drawn.rounds / rounds);
      microbatches.back() += drawn.microbatch * drawn.rounds - rounds * microbatches.back();
      stage.units.push_back({{rank}, std::move(microbatches)});
    }
  }
  return plan;
}

struct Distance {
  double sum = 0, worst = 0;
  void Add(double distance) {
    sum += std::abs(distance);
    worst = std::max(worst, std::abs(distance));
  }
};

// Of the plans of one schedule.
struct Found {
  Distance from_graph, from_price;
  double call_seconds = 0;
  int plans = 0;
};

// The shortest of some.
double CallSeconds(const Setting& setting, const Plan& plan) {
  double least = INFINITY;
  for (int i = 0; i < 7; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    (void)EstimatePlan(setting, plan);
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return least;
}

class Bench {
 public:
  explicit Bench(bool show) : show_(show) {}

  void Add(const DrawnPipeline& drawn) {
    const auto setting = SettingOf(drawn);
    if (!setting.ok()) return Miss(setting.status());
    double least = INFINITY, least_price = INFINITY, chosen = 0;
    for (size_t f = 0; f < 6; ++f) {
      const auto schedule = static_cast<ScheduleFamily>(f);
      const Plan plan = PlanOf(**setting, drawn, schedule);
      if (!Validate(plan, (*setting)->workload.model).ok()) continue;
      const auto estimate = EstimatePlan(**setting, plan);
      const auto evaluated = Evaluate(**setting, plan), priced = Price(**setting, plan);
      for (const absl::Status& status : {estimate.status(), evaluated.status(), priced.status()}) {
        if (!status.ok()) return Miss(status);
      }
      const double price = priced->plan.predicted.step_seconds, off = estimate->step_seconds / price - 1;
      Found& found = by_schedule_[std::string(ScheduleName(schedule))];
      found.from_graph.Add(estimate->step_seconds / evaluated->plan.predicted.step_seconds - 1);
      found.from_price.Add(off);
      found.call_seconds += CallSeconds(**setting, plan);
      ++found.plans;
      if (show_) {
        std::printf("%-12s %5.1f %%  %ld stages of %ld, %ld rounds, ZeRO %d%s%s\n", std::string(ScheduleName(schedule)).c_str(),
                    100 * off, drawn.stages, drawn.width, drawn.rounds, drawn.zero_stage, drawn.by_speed ? ", by speed" : "",
                    *std::max_element(drawn.fewer.begin(), drawn.fewer.end()) > 1 ? ", unlike rounds" : "");
      }
      least_price = std::min(least_price, price);
      if (estimate->step_seconds >= least) continue;
      least = estimate->step_seconds;
      chosen = price;
    }
    ++pipelines_;
    lost_ += chosen / least_price - 1;
    most_lost_ = std::max(most_lost_, chosen / least_price - 1);
  }

  void ReportTo(Report* report) const {
    for (const auto& [name, found] : by_schedule_) {
      report->Add(absl::StrCat(name, ": plans"), found.plans, "1");
      report->Add(absl::StrCat(name, ": a call"), 1e6 * found.call_seconds / found.plans, "us");
      report->Add(absl::StrCat(name, ": distance from the graph, mean"), 100 * found.from_graph.sum / found.plans, "%");
      report->Add(absl::StrCat(name, ": distance from the graph, worst"), 100 * found.from_graph.worst, "%");
      report->Add(absl::StrCat(name, ": distance from the price, mean"), 100 * found.from_price.sum / found.plans, "%");
      report->Add(absl::StrCat(name, ": distance from the price, worst"), 100 * found.from_price.worst, "%");
    }
    report->Add("the schedule estimated fastest: slower than the fastest, mean", 100 * lost_ / pipelines_, "%");
    report->Add("the same, worst", 100 * most_lost_, "%");
    report->AddGoal("without an estimate or a price", missed_, "1", 0);
  }

 private:
  void Miss(const absl::Status& status) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    ++missed_;
  }

  const bool show_;
  std::map<std::string, Found> by_schedule_;
  double lost_ = 0, most_lost_ = 0;
  int pipelines_ = 0, missed_ = 0;
};

int Main(int argc, char** argv) {
  int pipelines = 300;
  if (const std::string text = Report::Flag(argc, argv, "--pipelines"); !text.empty() && !absl::SimpleAtoi(text, &pipelines)) {
    std::fprintf(stderr, "--pipelines %s is not a number\n", text.c_str());
    return 64;
  }
  Bench bench(Report::Flag(argc, argv, "--show") == "yes");
  PipelineDrawer drawer;
  for (int i = 0; i < pipelines; ++i) bench.Add(drawer.Next());
  Report report;
  bench.ReportTo(&report);
  return report.Finish(argc, argv);
}

}  // namespace
}  // namespace motley::planner

int main(int argc, char** argv) { return motley::planner::Main(argc, argv); }
