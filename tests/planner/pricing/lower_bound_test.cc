// Reference: docs/inside/lower-bound.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/device/device_table.h"
#include "planner/cluster/cluster_file.h"
#include "planner/pricing/evaluate.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

constexpr UnitKind kEmbedding = UnitKind::kEmbedding, kLayer = UnitKind::kLayer, kHead = UnitKind::kHead;

struct Lab {
  std::vector<std::pair<std::string, int>> nodes = {{"A6000", 1}, {"P40", 1}};  // card and how many
  double nic_gb_per_second = 10;
  double memory_gib = 24;  // of every card
  double host_memory_gib = 0;
  int64_t batch = 4, layers = 2, hidden = 256;
  int max_tp = 1;
  double speed = 1;  // of every card
};

std::unique_ptr<Setting> Make(const Lab& lab) {
  std::string cards, nodes;
  for (const auto& [card, count] : lab.nodes) {
    const GpuSpec gpu = *FindGpu(card);
    const std::string own = absl::StrCat("[[card]]\nname = \"", card, "\"\nlike = \"", card, "\"\nmemory_gib = ", lab.memory_gib,
                                         "\nfp32_tflops = ", gpu.fp32_flops / 1e12 * lab.speed,
                                         "\nmemory_gb_per_second = ", gpu.memory_bytes_per_second / 1e9 * lab.speed, "\n");
    if (cards.find(own) == std::string::npos) cards += own;
    absl::StrAppend(&nodes, "[[node]]\ngpus = [{card = \"", card, "\", count = ", count, "}]\n");
  }
  absl::StatusOr<Cluster> cluster = ParseCluster(
      absl::StrCat("usable_memory = 1\n[defaults]\nnic_gb_per_second = ", lab.nic_gb_per_second, "\n",
                   lab.host_memory_gib > 0 ? absl::StrCat("host_memory_gib = ", lab.host_memory_gib, "\n") : "", cards, nodes),
      "lab");
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  Workload workload;
  workload.model_name = "small";
  workload.model = SmallModel(true, lab.layers);
  workload.model.hidden_size = lab.hidden;
  workload.model.head_dim = lab.hidden / workload.model.num_heads;
  workload.model.intermediate_size = 4 * lab.hidden;
  workload.global_batch = lab.batch;
  workload.seq_len = 128;
  PlanRequest request;
  request.max_tp = lab.max_tp;
  absl::StatusOr<std::unique_ptr<Setting>> setting = Setting::Create(*std::move(cluster), workload, request, nullptr);
  EXPECT_TRUE(setting.ok()) << setting.status();
  return *std::move(setting);
}

double Bound(const Lab& lab) { return FindLowerBound(*Make(lab)).seconds; }

double Seconds(const Setting& setting, int device, UnitKind unit, double samples) {
  const int kind = setting.KindOf(device);
  return setting.costs.ForwardSeconds(kind, unit, samples) + setting.costs.BackwardSeconds(kind, unit, samples);
}

// One sample forward and the part of its backward that the unit before waits for.
double Way(const Setting& setting, int device, UnitKind unit) {
  const int kind = setting.KindOf(device);
  return setting.costs.ForwardSeconds(kind, unit, 1) + setting.costs.BackwardInputSeconds(kind, unit, 1);
}

// Seconds for 0..batch samples of a unit, cut into the best microbatches.
std::vector<double> BestCuts(const Setting& setting, int device, UnitKind unit) {
  const int64_t batch = setting.workload.global_batch;
  std::vector<double> best(static_cast<size_t>(batch) + 1, std::numeric_limits<double>::infinity());
  best[0] = 0;
  for (size_t x = 1; x < best.size(); ++x) {
    for (size_t m = 1; m <= x; ++m)
      best[x] = std::min(best[x], best[x - m] + Seconds(setting, device, unit, static_cast<double>(m)));
  }
  return best;
}

// The best of all ways to give each unit's samples to two devices on two nodes, each way priced no higher than any plan of this
// form could be: compute without gaps, the first sample's way, and what must cross the network.
double ExhaustiveOptimum(const Setting& setting) {
  const int64_t batch = setting.workload.global_batch, layers = setting.workload.model.num_layers;
  std::vector<UnitKind> units(static_cast<size_t>(layers) + 2, kLayer);
  units.front() = kEmbedding;
  units.back() = kHead;
  std::vector<std::vector<std::vector<double>>> cuts(2);
  for (int d = 0; d < 2; ++d) {
    for (const UnitKind unit : units) cuts[d].push_back(BestCuts(setting, d, unit));
  }
  double best = std::numeric_limits<double>::infinity();
  std::vector<int64_t> x(units.size(), 0);  // samples of each unit on the first device
  while (true) {
    double busy[2] = {0, 0}, way = 0, bytes = 0;
    for (size_t u = 0; u < units.size(); ++u) {
      busy[0] += cuts[0][u][x[u]];
      busy[1] += cuts[1][u][batch - x[u]];
      double fastest = std::numeric_limits<double>::infinity();
      if (x[u] > 0) fastest = std::min(fastest, Way(setting, 0, units[u]));
      if (x[u] < batch) fastest = std::min(fastest, Way(setting, 1, units[u]));
      way += fastest;
      if (x[u] > 0 && x[u] < batch)
        bytes += static_cast<double>(setting.costs.UnitElements(units[u]) * setting.costs.element_bytes());
      if (u > 0) bytes += static_cast<double>(setting.costs.BoundaryBytes(1) * std::abs(x[u] - x[u - 1]));
    }
    best = std::min(best, std::max({busy[0], busy[1], way, bytes / setting.cluster.nodes[0].nic_bytes_per_second}));
    size_t u = 0;
    while (u < x.size() && x[u] == batch) x[u++] = 0;
    if (u == x.size()) return best;
    ++x[u];
  }
}

TEST(LowerBound, OneKindAloneIsItsWorkOverItsRates) {
  const Lab lab{.nodes = {{"L4", 4}}, .batch = 64};
  const std::unique_ptr<Setting> setting = Make(lab);
  double work = 0;
  for (const auto& [unit, count] : {std::pair(kEmbedding, 1), std::pair(kLayer, 2), std::pair(kHead, 1)}) {
    double best = std::numeric_limits<double>::infinity();
    for (int m = 1; m <= 64; ++m) best = std::min(best, Seconds(*setting, 0, unit, m) / m);
    work += 64 * count * best;
  }
  const LowerBound bound = FindLowerBound(*setting);
  EXPECT_NEAR(bound.seconds, work / 4, 1e-6 * work);
  EXPECT_THAT(bound.because, HasSubstr("compute: all 4 devices"));
}

// No plan that the exhaustive search allows is faster, whatever binds.
TEST(LowerBound, NeverAboveTheExhaustiveOptimum) {
  for (const int64_t batch : {1, 2, 3, 5, 7}) {
    for (const int64_t hidden : {64, 512}) {
      for (const double nic : {1e-3, 1e-2, 0.1, 1.0, 100.0}) {
        for (const char* second : {"P40", "A6000", "T4"}) {
          Lab lab{.nodes = {{"A6000", 1}, {second, 1}}, .nic_gb_per_second = nic, .batch = batch, .hidden = hidden};
          const std::unique_ptr<Setting> setting = Make(lab);
          const LowerBound bound = FindLowerBound(*setting);
          const double optimum = ExhaustiveOptimum(*setting);
          EXPECT_LE(bound.seconds, optimum) << second << " batch " << batch << " hidden " << hidden << " nic " << nic << ": "
                                            << bound.because;
          EXPECT_GT(bound.seconds, 0.2 * optimum);
        }
      }
    }
  }
}

TEST(LowerBound, IsCloseWhereTheNetworkIsFast) {
  const std::unique_ptr<Setting> setting = Make({.nic_gb_per_second = 100, .batch = 16, .layers = 1, .hidden = 1024});
  EXPECT_GT(FindLowerBound(*setting).seconds, 0.95 * ExhaustiveOptimum(*setting));
}

TEST(LowerBound, NeverRisesWithDevicesSpeedMemoryOrNetwork) {
  const Lab base{
      .nodes = {{"A6000", 1}, {"P40", 2}}, .nic_gb_per_second = 0.05, .memory_gib = 2, .batch = 32, .layers = 8, .hidden = 1024};
  const double bound = Bound(base);
  Lab more = base;
  more.nodes.push_back({"T4", 1});
  EXPECT_LE(Bound(more), bound * (1 + 1e-9));
  more = base;
  more.nodes[1].second = 3;
  EXPECT_LE(Bound(more), bound * (1 + 1e-9));
  more = base;
  more.speed = 1.1;
  EXPECT_LE(Bound(more), bound * (1 + 1e-9));
  more = base;
  more.memory_gib = 3;
  EXPECT_LE(Bound(more), bound * (1 + 1e-9));
  more = base;
  more.nic_gb_per_second = 0.06;
  EXPECT_LE(Bound(more), bound * (1 + 1e-9));
  more = base;
  more.max_tp = 2;
  EXPECT_LE(Bound(more), bound * (1 + 1e-9));
}

// Where memory does not hold the state and one sample's tensors, some are computed twice.
TEST(LowerBound, MemoryForcesRecomputation) {
  Lab lab{.nodes = {{"L4", 1}}, .memory_gib = 24, .batch = 8, .layers = 12, .hidden = 1024};
  const std::unique_ptr<Setting> roomy = Make(lab);
  const double state = static_cast<double>(roomy->costs.TotalElements() * roomy->costs.StateBytesPerElement());
  const double saved = 12 * static_cast<double>(roomy->costs.SavedBytes(0, kLayer, OpSet::None(), 1));
  lab.memory_gib = (state + saved / 2 + static_cast<double>(roomy->costs.ContextBytes(0))) / (int64_t{1} << 30);
  const std::unique_ptr<Setting> tight = Make(lab);
  const LowerBound bound = FindLowerBound(*tight);
  EXPECT_GT(bound.seconds, FindLowerBound(*roomy).seconds);
  EXPECT_THAT(bound.because, HasSubstr("recomputation"));
  double all_again = FindLowerBound(*roomy).seconds;
  for (int m = 1; m <= 8; ++m) {
    all_again = std::max(all_again, FindLowerBound(*roomy).seconds + 8.0 / m * 12 * tight->costs.ForwardSeconds(0, kLayer, m));
  }
  EXPECT_LT(bound.seconds, all_again);
  lab.host_memory_gib = 64;  // may hold the state
  EXPECT_NEAR(Bound(lab), FindLowerBound(*roomy).seconds, 1e-9);
}

// Behind a slow network a node's help is small; without help there is still the fastest node alone.
TEST(LowerBound, ASlowNetworkBindsUpToTheFastestNode) {
  Lab lab{.nodes = {{"A6000", 2}, {"A6000", 2}}, .nic_gb_per_second = 1e-4, .batch = 32, .layers = 8, .hidden = 1024};
  const LowerBound slow = FindLowerBound(*Make(lab));
  EXPECT_THAT(slow.because, HasSubstr("network"));
  const double alone = Bound({.nodes = {{"A6000", 2}}, .batch = 32, .layers = 8, .hidden = 1024});
  EXPECT_LE(slow.seconds, alone);
  EXPECT_GT(slow.seconds, 0.95 * alone);
  lab.nic_gb_per_second = 1000;
  EXPECT_NEAR(Bound(lab), alone / 2, 1e-6 * alone);
}

TEST(LowerBound, OneSampleMustPassAllLayers) {
  const LowerBound bound = FindLowerBound(*Make({.nodes = {{"L4", 8}}, .batch = 1, .layers = 4}));
  EXPECT_THAT(bound.because, HasSubstr("latency"));
  EXPECT_LT(Bound({.nodes = {{"L4", 8}}, .batch = 1, .layers = 4, .hidden = 256, .max_tp = 8}), bound.seconds);
}

TEST(LowerBound, EveryPresetHasOne) {
  Workload workload;
  workload.model_name = "small";
  workload.model = SmallModel(true, 8);
  workload.global_batch = 512;
  workload.seq_len = 128;
  for (const ClusterPreset& preset : ClusterPresets()) {
    const auto setting = Setting::Create(*LoadCluster(std::string(preset.name)), workload, {}, nullptr);
    ASSERT_TRUE(setting.ok()) << setting.status();
    const LowerBound bound = FindLowerBound(**setting);
    EXPECT_GT(bound.seconds, 0) << preset.name;
    EXPECT_TRUE(std::isfinite(bound.seconds)) << preset.name;
  }
}

}  // namespace
}  // namespace motley::planner
