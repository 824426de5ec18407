// The published tables again, from the authors' measured latencies: `papers_bench [--data DIR] [--json F]`.
// docs/inside/papers.md.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/bench_report.h"
#include "tests/bench/papers_calibration.h"
#include "tests/bench/papers_memory.h"
#include "tests/bench/papers_model.h"
#include "tests/bench/papers_tables.h"
#include "tests/common/base/folders.h"

namespace motley::bench {
namespace {

constexpr double kGoalError = 10;  // percent, mean over a table's own rows

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

void Line(const Experiment& experiment, std::string_view system, const Cell& cell, const Outcome& outcome) {
  std::printf("%-10s %-15s %-12s %5d ", std::string(experiment.name).c_str(), std::string(system).c_str(),
              std::string(cell.model).c_str(), cell.batch);
  if (outcome.published_seconds > 0) {
    std::printf("%10.2f s", outcome.published_seconds);
  } else {
    std::printf("%12s", "OOM");
  }
  if (outcome.status.ok()) {
    std::printf(" %10.2f s", outcome.seconds);
    if (outcome.published_seconds > 0) std::printf("  %6.3f", outcome.ratio());
    std::printf("  %s%s\n", outcome.binds.c_str(), outcome.estimated ? " (estimated)" : "");
  } else {
    std::printf("   %s\n", std::string(outcome.status.message()).substr(0, 120).c_str());
  }
}

class PapersBench {
 public:
  PapersBench(const planner::LatencyBook* cephalo, const planner::LatencyBook* zorse, std::string data)
      : data_(std::move(data)),
        cephalo_a_{"cephalo-a", "cephalo-a", 512, DType::kFloat32, false, cephalo},
        cephalo_b_{"cephalo-b", "cephalo-b", 512, DType::kFloat32, false, cephalo},
        zorse_a_{"zorse-a", "zorse-a", 4096, DType::kFloat16, true, zorse},
        zorse_b_{"zorse-b", "zorse-b", 1024, DType::kFloat16, true, zorse},
        zorse_c_{"zorse-c", "zorse-c", 512, DType::kFloat16, true, zorse} {}

  Report Run();

 private:
  static std::vector<Trial> TryAll(const Experiment& experiment, const System& system, const std::vector<Constants>& candidates);
  void Own(const System& system, const std::vector<Trial>& trials, const std::vector<Constants>& candidates,
           const std::vector<size_t>& chosen, std::vector<double>* errors);
  void Cephalo();
  void Zorse();
  void Others(const Experiment& experiment, std::span<const System> systems, const Constants& constants);
  void Memory();
  void AddCell(const Experiment& experiment, const System& system, const Cell& cell, const Outcome& outcome);

  const std::string data_;
  const Experiment cephalo_a_, cephalo_b_, zorse_a_, zorse_b_, zorse_c_;
  Constants calibrated_, calibrated_b_;
  Report report_;
};

void PapersBench::AddCell(const Experiment& experiment, const System& system, const Cell& cell, const Outcome& outcome) {
  Line(experiment, system.name, cell, outcome);
  const std::string name =
      absl::StrCat(std::string(experiment.name), "/", std::string(system.name), "/", std::string(cell.model), "/", cell.batch);
  if (outcome.published_seconds > 0) report_.Add(name + "/published", outcome.published_seconds, "s");
  if (outcome.status.ok()) report_.Add(name + "/simulated", outcome.seconds, "s");
  if (outcome.status.ok() && outcome.published_seconds > 0) report_.Add(name + "/ratio", outcome.ratio(), "1");
}

// The system's own rows, each with the constants that suit the other models best.
std::vector<Trial> PapersBench::TryAll(const Experiment& experiment, const System& system,
                                       const std::vector<Constants>& candidates) {
  std::vector<Trial> trials;
  for (const Cell& cell : system.cells) {
    Trial trial{&experiment, cell, {}};
    for (const Constants& constants : candidates)
      trial.outcomes.push_back(bench::Run(experiment, system.strategy, cell, constants));
    trials.push_back(std::move(trial));
  }
  return trials;
}

void PapersBench::Others(const Experiment& experiment, std::span<const System> systems, const Constants& constants) {
  for (const System& system : systems) {
    if (system.strategy.empty()) continue;
    for (const Cell& cell : system.cells)
      AddCell(experiment, system, cell, bench::Run(experiment, system.strategy, cell, constants));
  }
}

void PapersBench::Own(const System& system, const std::vector<Trial>& trials, const std::vector<Constants>& candidates,
                      const std::vector<size_t>& chosen, std::vector<double>* errors) {
  for (size_t i = 0; i < trials.size(); ++i) {
    const Outcome& outcome = trials[i].outcomes[chosen[i]];
    AddCell(*trials[i].experiment, system, trials[i].cell, outcome);
    errors->push_back(outcome.status.ok() ? 100 * std::abs(outcome.ratio() - 1) : 100);
  }
  const std::string name(trials.front().experiment->name);
  const size_t all = BestCandidate(trials, candidates, "");
  report_.Add(name + "/uncalibrated mean error", 100 * MeanError(trials, 0, ""), "%");
  report_.Add(name + "/compute factor that suits all models", 0.01 * candidates[all].compute_percent, "1");
  report_.Add(name + "/collectives' part of the list rate that suits all models", 0.01 * candidates[all].collective_percent, "1");
}

// The compute factor comes from cluster A, the collectives' rate from cluster B; neither from a row of the model that is judged.
void PapersBench::Cephalo() {
  std::vector<double> errors_a, errors_b;
  std::vector<Constants> compute, both = {Constants()};
  for (int percent = 100; percent <= 130; percent += 2) compute.push_back({percent, 100});
  const std::vector<Trial> a = TryAll(cephalo_a_, kCephaloSystemsA[0], compute);
  std::vector<size_t> chosen;
  for (const Trial& trial : a) chosen.push_back(BestCandidate(a, compute, trial.cell.model));
  Own(kCephaloSystemsA[0], a, compute, chosen, &errors_a);
  calibrated_ = compute[BestCandidate(a, compute, "")];

  std::set<int> factors;
  const auto factor_without = [&](std::string_view model) { return compute[BestCandidate(a, compute, model)].compute_percent; };
  for (const Cell& cell : kCephaloSystemsB[0].cells) factors.insert(factor_without(cell.model));
  for (const int factor : factors) {
    for (int percent = 30; percent <= 100; percent += 5) both.push_back({factor, percent});
  }
  const std::vector<Trial> b = TryAll(cephalo_b_, kCephaloSystemsB[0], both);
  chosen.clear();
  for (const Trial& trial : b) chosen.push_back(BestCandidate(b, both, trial.cell.model, factor_without(trial.cell.model)));
  Own(kCephaloSystemsB[0], b, both, chosen, &errors_b);
  calibrated_b_ = both[BestCandidate(b, both, "", calibrated_.compute_percent)];

  report_.Add("Cephalo table 4, own rows, mean error", Mean(errors_a), "%");
  report_.Add("Cephalo table 5, own rows, mean error", Mean(errors_b), "%");
  errors_a.insert(errors_a.end(), errors_b.begin(), errors_b.end());
  report_.AddGoal("Cephalo tables 4 and 5, own rows, mean error", Mean(errors_a), "%", kGoalError);
}

// No constant: what the data sheets and the paper say.
void PapersBench::Zorse() {
  const std::vector<Constants> none = {Constants()};
  std::vector<double> errors, other;
  const std::vector<Trial> a = TryAll(zorse_a_, kZorseSystemsA[0], none);
  Own(kZorseSystemsA[0], a, none, std::vector<size_t>(a.size(), 0), &errors);
  report_.AddGoal("Zorse table 3, own rows on A, mean error", Mean(errors), "%", kGoalError);
  for (const auto& [experiment, systems] : {std::pair{&zorse_b_, &kZorseSystemsB}, std::pair{&zorse_c_, &kZorseSystemsC}}) {
    for (const Cell& cell : (*systems)[0].cells)
      AddCell(*experiment, (*systems)[0], cell, bench::Run(*experiment, "zorse", cell, none[0]));
  }
}

Report PapersBench::Run() {
  std::printf("%-10s %-15s %-12s %5s %12s %12s  %6s  %s\n", "cluster", "system", "model", "batch", "published", "simulated",
              "ratio", "bound by");
  Cephalo();
  Zorse();
  Memory();
  Others(cephalo_a_, std::span(kCephaloSystemsA).subspan(1), calibrated_);
  Others(cephalo_b_, std::span(kCephaloSystemsB).subspan(1), calibrated_b_);
  Others(zorse_a_, std::span(kZorseSystemsA).subspan(1), Constants());
  Others(zorse_b_, std::span(kZorseSystemsB).subspan(1), Constants());
  Others(zorse_c_, std::span(kZorseSystemsC).subspan(1), Constants());
  return std::move(report_);
}

// Every cell of the systems whose memory can be counted: does it run out where the paper says so, and only there.
void PapersBench::Memory() {
  const auto measured = ReadMeasuredMemory(data_ + "/cephalo/model_memory.json");
  const auto cluster = planner::LoadCluster("cephalo-a");
  if (measured.empty() || !cluster.ok()) {
    report_.AddCheck("out of memory cells", false);
    return;
  }
  int agree = 0, total = 0, oom_agree = 0, oom = 0;
  for (const System& system : kCephaloSystemsA) {
    if (system.name == "FlashFlex" || system.name == "Cephalo") continue;  // never out of memory; offloads
    for (const Cell& cell : system.cells) {
      const auto workload = AuthorsWorkload(cephalo_a_, cell);
      const auto memory = measured.find(workload.ok() ? workload->profile_name : "");
      const auto costs = workload.ok() ? planner::Costs::Create(*cluster, *workload, nullptr) : workload.status();
      if (memory == measured.end() || !costs.ok()) continue;
      const CardsOfA cards(*cluster, costs->ContextBytes(0));
      const MemoryVerdict verdict = FullestCard(system.name, cell, cards, memory->second, *costs);
      const bool published = cell.published == 0, same = verdict.overflows == published;
      std::printf("memory     %-15s %-12s %5d %s %6.1f of %4.1f GiB %s\n", std::string(system.name).c_str(),
                  std::string(cell.model).c_str(), cell.batch, published ? "OOM " : "fits", verdict.needs, verdict.has,
                  same ? "" : "DIFFERS");
      ++total;
      agree += same ? 1 : 0;
      oom += published ? 1 : 0;
      oom_agree += published && same ? 1 : 0;
    }
  }
  report_.Add("cells whose memory was judged as published", agree, absl::StrCat("of ", total));
  report_.AddGoal("out of memory cells reproduced", oom_agree, absl::StrCat("of ", oom), oom, Limit::kAtLeast);
}

}  // namespace
}  // namespace motley::bench

int main(int argc, char** argv) {
  using motley::bench::Report;
  std::string data = Report::Flag(argc, argv, "--data");
  if (data.empty()) data = motley::SourceFolder() + "/../shared/data";
  std::vector<motley::planner::LatencyBook> books;
  for (const char* name : {"/cephalo/model_latencies.json", "/zorse/model_latencies.json"}) {
    auto book = motley::planner::LatencyBook::Load(data + name);
    if (!book.ok()) {
      std::fprintf(stderr, "papers_bench: %s\nGive the folder of the authors' published latencies with --data DIR.\n",
                   std::string(book.status().message()).c_str());
      return 1;
    }
    books.push_back(*std::move(book));
  }
  motley::bench::PapersBench bench(&books[0], &books[1], data);
  return bench.Run().Finish(argc, argv);
}
