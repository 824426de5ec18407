// How far strategies are from the optimum of their own problem, by brute force on small random instances.
//   optimality_bench [--json F] [--instances N]     default 100,000
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "planner/strategies/cephalo_equation4.h"
#include "planner/strategies/split_problem.h"
#include "tests/bench/bench_report.h"
#include "tests/planner/split_instances.h"

namespace motley::planner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Cephalo's equations 2 and 3. The solver must find the same number, or no split where there is none.
void MeasureCephalo(int instances, bench::Report* report) {
  std::mt19937_64 random(20240601);
  int feasible = 0, wrong = 0;
  for (int i = 0; i < instances; ++i) {
    const SplitProblem problem = RandomProblem(random);
    const double expected = BruteForce(problem).Solve();
    const SplitAnswer answer = SolveSplit(problem);
    const double found = answer.feasible ? answer.seconds : kInfinity;
    const bool equal = found == expected || std::abs(found - expected) <= 1e-12 * expected;
    wrong += equal ? 0 : 1;
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

}  // namespace
}  // namespace motley::planner

int main(int argc, char** argv) {
  const std::string given = motley::bench::Report::Flag(argc, argv, "--instances");
  const int instances = given.empty() ? 100'000 : std::atoi(given.c_str());
  if (instances < 1) {
    std::fprintf(stderr, "--instances must be a number of at least 1\n");
    return 64;
  }
  motley::bench::Report report;
  motley::planner::MeasureCephalo(instances, &report);
  motley::planner::MeasureEquation4(instances, &report);
  return report.Finish(argc, argv);
}
