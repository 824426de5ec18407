// How far strategies are from the optimum of their own problem, and auto from that of the whole plan language: by brute force on
// small random instances, the same in every run. One core, a few minutes.
//   optimality_bench [--json F] [--instances N] [--only STRATEGY] [--show]
//     --instances   of cephalo's problem, default 100,000; of the others no more than that
//     --only        cephalo, poplar, hexiscale or auto
//     --show        where hexiscale or auto is worse than the best, both; every instance of auto with its figures
//
// cephalo, poplar: the solver and the brute force answer the same question; they must agree.
// hexiscale: its search against all layouts of its stated problem (hexiscale_layouts.h), priced by that problem, not simulated.
// auto: its plan against the best of all plans (all_plans.h says what counts as all), both simulated.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/answers/plan_answer.h"
#include "planner/published/cephalo_equation4.h"
#include "planner/search/plan_moves.h"
#include "planner/split/split_problem.h"
#include "planner/strategies/hexiscale/hexiscale_partition.h"
#include "planner/strategies/hexiscale/hexiscale_search.h"
#include "planner/strategies/poplar/poplar_exact.h"
#include "planner/util/quantity_text.h"
#include "tests/bench/bench_report.h"
#include "tests/planner/best_of_all_plans.h"
#include "tests/planner/split/split_instances.h"
#include "tests/planner/strategies/hexiscale/hexiscale_layouts.h"
#include "tests/planner/strategies/poplar/poplar_instances.h"
#include "tests/planner/tiny_settings.h"

namespace motley::planner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Percent over the optimum, by instance.
struct Gaps {
  std::vector<double> percent;
  void Add(double found, double optimum) { percent.push_back(100 * (found / optimum - 1)); }
  double Mean() const {
    double sum = 0;
    for (const double p : percent) sum += p;
    return percent.empty() ? 0 : sum / static_cast<double>(percent.size());
  }
  int64_t None() const {
    return std::count_if(percent.begin(), percent.end(), [](double p) { return p < 1e-6; });
  }
  double Worst() const { return percent.empty() ? 0 : *std::max_element(percent.begin(), percent.end()); }
};

// Infinite: no answer.
bool Equal(double found, double expected) {
  if (found == kInfinity || expected == kInfinity) return found == expected;
  return std::abs(found - expected) <= 1e-12 * expected;
}

// Cephalo's equations 2 and 3. The solver must find the same number, or no split where there is none.
void MeasureCephalo(int instances, bench::Report* report) {
  std::mt19937_64 random(20240601);
  int feasible = 0, wrong = 0;
  for (int i = 0; i < instances; ++i) {
    const SplitProblem problem = RandomProblem(random);
    const double expected = BruteForce(problem).Solve();
    const SplitAnswer answer = SolveSplit(problem);
    const double found = answer.feasible ? answer.seconds : kInfinity;
    wrong += Equal(found, expected) ? 0 : 1;
    feasible += expected < kInfinity ? 1 : 0;
  }
  report->Add("cephalo: random instances", instances, "1");
  report->Add("cephalo: of them with a split", feasible, "1");
  report->AddGoal("cephalo: differ from brute force", wrong, "1", 0);
}

// What the paper's eq. 4 loses against its equations 2 and 3, with at least one sample on every device in both.
void MeasureEquation4(int instances, bench::Report* report) {
  std::mt19937_64 random(20240602);
  std::vector<double> excess;  // percent
  for (int i = 0; i < instances; ++i) {
    SplitProblem problem = RandomProblem(random);
    problem.least_batch = 1;
    const Equation4Answer printed = SolveEquation4(&problem, problem.batch, nullptr);
    if (!printed.split.feasible || printed.split.seconds == 0) continue;
    excess.push_back(100 * (printed.split.seconds / SolveSplit(problem).seconds - 1));
  }
  if (excess.empty()) return;
  std::sort(excess.begin(), excess.end());
  const auto at = [&](double part) { return excess[static_cast<size_t>(part * static_cast<double>(excess.size() - 1))]; };
  const auto more = std::count_if(excess.begin(), excess.end(), [](double e) { return e > 1; });
  report->Add("cephalo as printed (eq. 4): instances with a split", static_cast<double>(excess.size()), "1");
  report->Add("cephalo as printed (eq. 4): more than 1 % over the optimum",
              100.0 * static_cast<double>(more) / static_cast<double>(excess.size()), "%");
  report->Add("cephalo as printed (eq. 4): over the optimum, median", at(0.5), "%");
  report->Add("cephalo as printed (eq. 4): over the optimum, 90 of 100 below", at(0.9), "%");
}

// Poplar's exact batch search, with a synchronisation a step and with one a round.
void MeasurePoplar(int instances, bench::Report* report) {
  std::mt19937 random(20240603);
  int feasible = 0, wrong = 0;
  Gaps gaps;
  for (int i = 0; i < 2 * instances; ++i) {
    const PoplarProblem problem = RandomPoplarProblem(&random, /*rounds=*/i % 2 == 1);
    const double expected = PoplarByBruteForce(problem);
    const PoplarAnswer answer = SolvePoplarExact(problem);
    const double found = answer.feasible ? answer.seconds : kInfinity;
    wrong += Equal(found, expected) ? 0 : 1;
    if (expected == kInfinity || found == kInfinity) continue;
    ++feasible;
    gaps.Add(found, expected);
  }
  report->Add("poplar: random instances", 2 * instances, "1");
  report->Add("poplar: of them with a split", feasible, "1");
  report->AddGoal("poplar: differ from brute force", wrong, "1", 0);
  report->AddGoal("poplar: over the optimum, worst", gaps.Worst(), "%", 1);
}

// HexiScale's search, priced by its own stated problem.
void MeasureHexiscale(int instances, bool show, bench::Report* report) {
  TinySettings settings(20240604, {3, 4, 3, 7, 2, 6});
  int feasible = 0, wrong = 0;
  Gaps gaps;
  for (int i = 0; i < instances; ++i) {
    const std::unique_ptr<Setting> setting = settings.Next();
    HexiscaleProblem problem(*setting, /*shared_links=*/false);
    EveryHexiscaleLayout every(*setting, &problem);
    const double optimum = every.Best();
    auto search = HexiscaleSearch::Create(*setting, &problem, /*limits=*/{});
    if (!search.ok()) continue;  // pins only, and there are none
    const auto layouts = search->Run(PartitionIntoPipelines(*setting), 1);
    const double found = layouts.ok() ? (*layouts)[0].seconds : kInfinity;
    if (show && found > optimum * (1 + 1e-9)) {
      std::printf("hexiscale %d: found %.6g s: %s\n  optimum %.6g s: %s\n", i, found,
                  layouts.ok() ? ToText(*setting, (*layouts)[0].layout).c_str() : "nothing", optimum,
                  ToText(*setting, every.best_layout()).c_str());
    }
    wrong += (found == kInfinity) != (optimum == kInfinity) ? 1 : 0;
    if (found == kInfinity || optimum == kInfinity) continue;
    ++feasible;
    gaps.Add(found, optimum);
  }
  report->Add("hexiscale: random settings of 3 and 4 devices", instances, "1");
  report->Add("hexiscale: of them with a layout", feasible, "1");
  report->AddGoal("hexiscale: found none where there is one", wrong, "1", 0);
  report->Add("hexiscale: over the optimum, mean", gaps.Mean(), "%");
  report->AddGoal("hexiscale: over the optimum, worst", gaps.Worst(), "%", 1);
}

// The setting in a line, for people.
std::string ToText(const Setting& setting) {
  const Workload& workload = setting.workload;
  std::string text = absl::StrCat(workload.model.num_layers, " layers of ", workload.model.hidden_size, ", vocabulary ",
                                  workload.model.vocab_size, workload.model.tie_embeddings ? " tied" : "", ", batch ",
                                  workload.global_batch, " x ", workload.seq_len, ";");
  for (int d = 0; d < setting.num_devices(); ++d) {
    const ClusterDevice& device = setting.cluster.devices[d];
    absl::StrAppend(&text, " ", device.id.value(), " ", setting.cluster.kinds[device.kind].name, " ",
                    BytesText(setting.UsableBytes(d)));
  }
  return absl::StrCat(text, "; network ", BytesText(static_cast<int64_t>(setting.cluster.nodes[0].nic_bytes_per_second)), "/s",
                      setting.cluster.nodes[0].host_memory_bytes > 0 ? ", host memory known" : "");
}

// Whether a search, which goes by the estimate first, could have seen it.
void PrintWithEstimate(const Setting& setting, const Plan& plan) {
  const absl::StatusOr<QuickPrice> estimate = EstimatePlan(setting, plan);
  std::printf("%s  estimated at %.6g s\n", ToText(plan).c_str(), estimate.ok() ? estimate->step_seconds : kInfinity);
}

// auto's simulated plan against the best plan of the language.
void MeasureAuto(int instances, bool show, bench::Report* report) {
  TinySettings settings(20240605);
  const absl::StatusOr<CatalogEntry> strategy = FindInCatalog("auto");
  int feasible = 0, missed = 0;
  int64_t simulated = 0;
  Gaps gaps;
  for (int i = 0; strategy.ok() && i < instances; ++i) {
    const std::unique_ptr<Setting> setting = settings.Next();
    const absl::StatusOr<Evaluation> found = PlanAndEvaluate(*setting, *strategy);
    const double seconds = found.ok() ? found->plan.predicted.step_seconds : kInfinity;
    AllPlansGrid grid;
    // From none to all, the operator with the fewest seconds for a byte first; for three ranks that were too many.
    if (setting->num_devices() == 2) grid.recompute = RecomputeLadder(*setting, 0, 1);
    const BestOfAllPlans best = FindBestOfAllPlans(*setting, grid, seconds);
    simulated += best.simulated;
    if (show) {
      std::printf("auto %d: %s\n  auto %.6g s, best %.6g s; %lld plans seen, %lld simulated, %lld choices passed over\n", i,
                  ToText(*setting).c_str(), seconds, best.seconds, static_cast<long long>(best.seen),
                  static_cast<long long>(best.simulated), static_cast<long long>(best.passed));
      if (best.seconds < seconds) {
        if (found.ok()) PrintWithEstimate(*setting, found->plan);
        PrintWithEstimate(*setting, best.plan);
      }
      std::fflush(stdout);
    }
    missed += best.seconds < kInfinity && !found.ok() ? 1 : 0;
    if (!found.ok()) continue;
    ++feasible;
    gaps.Add(seconds, best.seconds);
  }
  report->Add("auto: random settings of 2 and 3 devices", instances, "1");
  report->Add("auto: of them with a plan", feasible, "1");
  report->AddGoal("auto: found none where there is one", missed, "1", 0);
  report->Add("auto: plans simulated to find the best", static_cast<double>(simulated), "1");
  report->Add("auto: of them with the best plan of the language", static_cast<double>(gaps.None()), "1");
  report->Add("auto: over the best plan of the language, mean", gaps.Mean(), "%");
  report->AddGoal("auto: over the best plan of the language, worst", gaps.Worst(), "%", 1);
}

}  // namespace
}  // namespace motley::planner

int main(int argc, char** argv) {
  const std::string given = motley::bench::Report::Flag(argc, argv, "--instances");
  const int instances = given.empty() ? 100'000 : std::atoi(given.c_str());
  if (instances < 1) {
    std::fprintf(stderr, "--instances must be a number of at least 1\n");
    return 64;
  }
  const bool show = std::any_of(argv + 1, argv + argc, [](const char* flag) { return std::strcmp(flag, "--show") == 0; });
  motley::bench::Report report;
  const std::string only = motley::bench::Report::Flag(argc, argv, "--only");
  const auto wanted = [&](const char* strategy) { return only.empty() || only == strategy; };
  if (wanted("cephalo")) motley::planner::MeasureCephalo(instances, &report);
  if (wanted("cephalo")) motley::planner::MeasureEquation4(instances, &report);
  if (wanted("poplar")) motley::planner::MeasurePoplar(std::min(instances, 1000), &report);
  if (wanted("hexiscale")) motley::planner::MeasureHexiscale(std::min(instances, 300), show, &report);
  if (wanted("auto")) motley::planner::MeasureAuto(std::min(instances, 40), show, &report);
  if (report.rows().empty()) {
    std::fprintf(stderr, "--only must be cephalo, poplar, hexiscale or auto, got '%s'\n", only.c_str());
    return 64;
  }
  return report.Finish(argc, argv);
}
