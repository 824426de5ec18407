// What `motley estimate` says of clusters, models and batches drawn by a seed, against what `motley plan` finds: whether it fits
// and runs here, the bytes that it lacks, the largest batch and the longest sequence.
//
//   promise_bench [--rows N] [--seed S] [--budget NODES] [--json FILE]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/bench/bench_report.h"
#include "tests/bench/promise_rows.h"

namespace motley::planner {
namespace {

constexpr int kRowsALine = 20;

int64_t Number(int argc, char** argv, const char* flag, int64_t otherwise) {
  const std::string text = bench::Report::Flag(argc, argv, flag);
  return text.empty() ? otherwise : std::atoll(text.c_str());
}

int Main(int argc, char** argv) {
  const int64_t rows = Number(argc, argv, "--rows", 300);
  const auto seed = static_cast<uint64_t>(Number(argc, argv, "--seed", 1));
  const int64_t budget = Number(argc, argv, "--budget", PlanRequest().budget_nodes);
  PromiseDrawer drawer(seed, budget);
  int asked = 0, fit = 0, any = 0, broken = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const PromiseRow row = drawer.Next();
    if (row.setting == nullptr) continue;
    const Promise promise = PromiseCheck(*row.setting).Run();
    ++asked;
    fit += promise.fits;
    any += promise.any_batch;
    broken += !promise.broken.empty();
    for (const std::string& line : promise.broken) std::printf("%ld: %s: %s\n", i, row.name.c_str(), line.c_str());
    if (asked % kRowsALine == 0) std::printf("%d settings, %d of them fit, %d differ\n", asked, fit, broken);
    std::fflush(stdout);
  }
  bench::Report report;
  report.Add("settings", asked, "1");
  report.Add("of them fit", fit, "1");
  report.Add("of them take any batch", any, "1");
  report.AddGoal("estimate and plan differ", broken, "1", 0);
  return report.Finish(argc, argv);
}

}  // namespace
}  // namespace motley::planner

int main(int argc, char** argv) { return motley::planner::Main(argc, argv); }
