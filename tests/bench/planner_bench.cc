// Planner time at batch 512: the split itself (what the paper's dynamic program takes 327 s for at 64 devices) and the whole
// answer with lowering, simulation and explanation. "distinct": no two devices measure alike, as in life.
#include <algorithm>
#include <cstdio>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "planner/simulator/cost_model.h"
#include "planner/strategies/cephalo.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::planner {
namespace {

ModelShape BenchModel() {
  ModelShape model = SmallModel(true, 24);
  model.hidden_size = 1024;
  model.num_heads = model.num_kv_heads = 16;
  model.head_dim = 64;
  model.intermediate_size = 4096;
  return model;
}

// The fixture's samples are 32 tokens; `tokens` makes them as long in time.
PlannerInput MakeCluster(int devices, bool distinct, double memory, double tokens) {
  std::mt19937_64 random(1);
  const std::vector<DeviceSetup> kinds = {{"", "A6000", 38e12, int64_t{48} << 30},  {"", "L4", 30e12, int64_t{24} << 30},
                                          {"", "P40", 11.8e12, int64_t{24} << 30},  {"", "P100", 9.3e12, int64_t{16} << 30},
                                          {"", "V100", 15.7e12, int64_t{16} << 30}, {"", "T4", 8.1e12, int64_t{15} << 30}};
  std::vector<DeviceSetup> setups;
  for (int i = 0; i < devices; ++i) {
    DeviceSetup setup = kinds[static_cast<size_t>(i) % kinds.size()];
    setup.id = absl::StrCat("n", 100 + i, "/gpu0");
    setup.flops_per_second *= 32 / tokens;
    setup.memory_bytes = static_cast<int64_t>(memory * static_cast<double>(setup.memory_bytes));
    if (distinct) setup.flops_per_second *= std::uniform_real_distribution<double>(0.97, 1.03)(random);
    setups.push_back(setup);
  }
  return MakeInput(BenchModel(), setups, 512, 1e10, 1.15);
}

double Milliseconds(absl::Time start) { return absl::ToDoubleMilliseconds(absl::Now() - start); }

void Measure(int devices, bool distinct, double memory, double tokens, const char* label) {
  const PlannerInput input = MakeCluster(devices, distinct, memory, tokens);
  constexpr int kRuns = 5;
  double split = 1e30;
  bool fits = false;
  for (int i = 0; i < kRuns; ++i) {
    const absl::Time start = absl::Now();
    const auto cost = CostModel::Create(input);
    fits = cost.ok() && PlanCephalo(input, *cost).ok();
    split = std::min(split, Milliseconds(start));
  }
  const absl::Time start = absl::Now();
  const auto result = MakePlan(input);
  const double whole = Milliseconds(start);
  std::printf(
      "%7d  %-9s %-18s %10.2f ms %12.1f ms   %s\n", devices, distinct ? "distinct" : "equal", label, split, whole,
      fits ? (result.ok() ? result->plan.predicted.binding_constraint.c_str() : std::string(result.status().message()).c_str())
           : "does not fit");
}

}  // namespace
}  // namespace motley::planner

int main() {
  std::printf("%7s  %-9s %-18s %13s %15s   %s\n", "devices", "of a kind", "memory", "split", "whole answer", "bound by");
  for (const int devices : {8, 16, 32, 64}) {
    for (const bool distinct : {false, true}) {
      motley::planner::Measure(devices, distinct, 1, 1024, "plenty");
      motley::planner::Measure(devices, distinct, 1, 32, "plenty, slow links");
      motley::planner::Measure(devices, distinct, 0.055 + 0.2 / devices, 1024, "tight");
    }
  }
  return 0;
}
