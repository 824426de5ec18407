#include "planner/strategies/hexiscale/hexiscale_partition.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "planner/groups/graph_partition.h"
#include "planner/groups/groupings.h"

namespace motley::planner {
namespace {

constexpr int kAllPartitions = 6;  // devices
constexpr int kMostForTwoBalances = 96;
constexpr double kBalances[] = {1.05, 1.4};

class Collector {
 public:
  void Add(Parts parts) {
    for (std::vector<int>& part : parts) std::sort(part.begin(), part.end());
    parts.erase(std::remove_if(parts.begin(), parts.end(), [](const auto& part) { return part.empty(); }), parts.end());
    std::sort(parts.begin(), parts.end());
    if (seen_.insert(parts).second) result_.push_back(std::move(parts));
  }
  // Those added since the last call.
  std::vector<Parts> Take() { return std::exchange(result_, {}); }

 private:
  std::set<Parts> seen_;
  std::vector<Parts> result_;
};

void AddAll(int device, int n, Parts* parts, Collector* collector) {
  if (device == n) {
    collector->Add(*parts);
    return;
  }
  for (size_t p = 0; p < parts->size(); ++p) {
    (*parts)[p].push_back(device);
    AddAll(device + 1, n, parts, collector);
    (*parts)[p].pop_back();
  }
  parts->push_back({device});
  AddAll(device + 1, n, parts, collector);
  parts->pop_back();
}

std::vector<int> PipelineCounts(const Setting& setting) {
  std::vector<int> counts;
  const int most = static_cast<int>(std::min<int64_t>(setting.num_devices(), setting.workload.global_batch));
  for (int d = 1; d <= most; d += d < 6 ? 1 : d < 12 ? 2 : d / 3) counts.push_back(d);
  for (int d = 8; d <= most; d *= 2) counts.push_back(d);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

// Devices of one node and kind, by kind, then region, then node.
std::vector<std::vector<int>> Leaves(const Setting& setting) {
  std::map<std::tuple<int, int, int>, std::vector<int>> leaves;
  for (int i = 0; i < setting.num_devices(); ++i) {
    const ClusterDevice& device = setting.cluster.devices[i];
    leaves[{device.kind, setting.cluster.nodes[device.node].region, device.node}].push_back(i);
  }
  std::vector<std::vector<int>> result;
  for (auto& [key, devices] : leaves) result.push_back(std::move(devices));
  return result;
}

// Halved until there are at least as many as pipelines.
std::vector<std::vector<int>> Pieces(std::vector<std::vector<int>> leaves, int pipelines) {
  while (static_cast<int>(leaves.size()) < pipelines) {
    std::vector<std::vector<int>> halves;
    for (const std::vector<int>& leaf : leaves) {
      const auto middle = leaf.begin() + static_cast<std::ptrdiff_t>((leaf.size() + 1) / 2);
      halves.emplace_back(leaf.begin(), middle);
      if (middle != leaf.end()) halves.emplace_back(middle, leaf.end());
    }
    if (halves.size() == leaves.size()) break;
    leaves = std::move(halves);
  }
  return leaves;
}

void AddFromTree(const std::vector<std::vector<int>>& leaves, const std::vector<double>& speeds, int pipelines,
                 Collector* collector) {
  const size_t d = static_cast<size_t>(pipelines);
  const std::vector<std::vector<int>> pieces = Pieces(leaves, pipelines);
  const auto speed_of = [&](const std::vector<int>& devices) {
    return std::accumulate(devices.begin(), devices.end(), 0.0, [&](double sum, int i) { return sum + speeds[i]; });
  };
  // The fastest piece to the slowest pipeline so far.
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return speed_of(pieces[a]) > speed_of(pieces[b]); });
  Parts by_speed(d), in_turn(d), runs(d), divided(d);
  std::vector<double> load(d, 0);
  for (size_t p : order) {
    const size_t to = static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    by_speed[to].insert(by_speed[to].end(), pieces[p].begin(), pieces[p].end());
    load[to] += speed_of(pieces[p]);
  }
  double total = 0, so_far = 0;
  for (const std::vector<int>& piece : pieces) total += speed_of(piece);
  for (size_t p = 0; p < pieces.size(); ++p) {
    in_turn[p % d].insert(in_turn[p % d].end(), pieces[p].begin(), pieces[p].end());
    const double middle = so_far + speed_of(pieces[p]) / 2;
    std::vector<int>& run = runs[std::min(d - 1, static_cast<size_t>(middle / total * static_cast<double>(d)))];
    run.insert(run.end(), pieces[p].begin(), pieces[p].end());
    so_far += speed_of(pieces[p]);
  }
  size_t next = 0;
  for (const std::vector<int>& leaf : leaves) {
    const size_t each = (leaf.size() + d - 1) / d;
    for (size_t i = 0; i < leaf.size(); ++i) divided[(next + i / each) % d].push_back(leaf[i]);
    next += (leaf.size() + each - 1) / each;
  }
  for (Parts* parts : {&by_speed, &in_turn, &runs, &divided}) collector->Add(std::move(*parts));
}

}  // namespace

EdgeWeights RatesOf(const Setting& setting) {
  const size_t n = static_cast<size_t>(setting.num_devices());
  EdgeWeights rates(n, std::vector<double>(n, 0));
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = a + 1; b < n; ++b) rates[a][b] = rates[b][a] = setting.links.Rate(static_cast<int>(a), static_cast<int>(b));
  }
  return rates;
}

std::vector<double> SpeedsOf(const Setting& setting) {
  std::vector<double> speeds;
  for (int i = 0; i < setting.num_devices(); ++i) {
    const double seconds = setting.costs.ForwardSeconds(setting.KindOf(i), UnitKind::kLayer, 1) +
                           setting.costs.BackwardSeconds(setting.KindOf(i), UnitKind::kLayer, 1);
    speeds.push_back(1 / std::max(1e-12, seconds));
  }
  return speeds;
}

PipelinePartitions PartitionIntoPipelines(const Setting& setting) {
  Collector collector;
  PipelinePartitions result;
  const int n = setting.num_devices();
  if (n <= kAllPartitions) {
    Parts parts;
    AddAll(0, n, &parts, &collector);
    result.by_metis = collector.Take();
    return result;
  }
  const EdgeWeights rates = RatesOf(setting);
  PartitionQuestion question;
  question.vertices.resize(static_cast<size_t>(n));
  std::iota(question.vertices.begin(), question.vertices.end(), 0);
  question.vertex_weights = SpeedsOf(setting);
  const std::vector<int> counts = PipelineCounts(setting);
  for (int pipelines : counts) {
    question.parts = pipelines;
    for (double balance : kBalances) {
      if (balance != kBalances[0] && n > kMostForTwoBalances) continue;
      question.balance = balance;
      for (bool maximize : {false, true}) {
        question.maximize_cut = maximize;
        absl::StatusOr<Parts> parts = PartitionGraph(rates, question);
        if (parts.ok()) collector.Add(*std::move(parts));
      }
    }
  }
  result.by_metis = collector.Take();
  const std::vector<std::vector<int>> leaves = Leaves(setting);
  for (int pipelines : counts) AddFromTree(leaves, question.vertex_weights, pipelines, &collector);
  for (Grouping& grouping : CandidateGroupings(setting)) collector.Add(std::move(grouping.groups));
  result.from_tree = collector.Take();
  return result;
}

}  // namespace motley::planner
