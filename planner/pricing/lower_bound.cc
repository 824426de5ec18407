// What no plan can beat: docs/inside/lower-bound.md states and proves each part.
//
//   compute   all work of the batch, divided in any way over all devices, each always at its best rate;
//             with it the recomputation that the cluster's memory forces
//   latency   one sample passes all units one after the other
//   network   nodes (regions) whose links carry little in T can do little of the work in T
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/pricing/evaluate.h"
#include "planner/setting/least_lack.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

constexpr UnitKind kUnits[] = {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead};
// The simulator rounds to picoseconds; a bound must not be above it by that.
constexpr double kRounding = 1 - 1e-9;

// Work of one type: how much there is, and seconds per piece by kind of device.
struct Work {
  double amount = 0;
  std::vector<double> seconds;
};

// The least of seconds(m) / m over microbatches m of 1..batch. Exact up to kExact; beyond, seconds never fall with m, so those
// at the beginning of an interval divided by its end are a bound that is at most 1/kExact too low.
template <typename Function>
double LeastPerSample(int64_t batch, Function seconds) {
  constexpr int64_t kExact = 256;
  double best = kInfinity;
  for (int64_t low = 1; low <= batch;) {
    const int64_t high = std::min(batch, low + low / kExact);
    best = std::min(best, seconds(static_cast<double>(low)) / static_cast<double>(high));
    low = high + 1;
  }
  return best;
}

// A plan may run a backward whole or in two.
double BestSecondsPerSample(const Costs& costs, int kind, UnitKind unit, int64_t batch) {
  return LeastPerSample(batch, [&](double m) {
    const double in_two = costs.BackwardInputSeconds(kind, unit, m) + costs.BackwardWeightSeconds(kind, unit, m);
    return costs.ForwardSeconds(kind, unit, m) + std::min(costs.BackwardSeconds(kind, unit, m), in_two);
  });
}

int64_t CountOf(const Setting& setting, UnitKind unit) {
  return unit == UnitKind::kLayer ? setting.workload.model.num_layers : 1;
}

// Bytes of one sample's saved tensors that cannot be kept until its backward begins: at that moment all units' tensors of the
// sample lie in memory together, beside what of the training state hosts cannot hold.
double ForcedBytesPerSample(const Setting& setting) {
  double memory = 0;
  for (int d = 0; d < setting.num_devices(); ++d) {
    memory += std::max(
        0.0, static_cast<double>(setting.UsableBytes(d)) - static_cast<double>(setting.costs.ContextBytes(setting.KindOf(d))));
  }
  const auto state = static_cast<double>(StateOnDevices(setting));
  int64_t least = INT64_MAX;  // of the kinds: what was measured may differ
  for (int kind = 0; kind < setting.costs.num_kinds(); ++kind) {
    least = std::min(least, setting.costs.SavedBytes(kind, UnitKind::kLayer, OpSet::None(), 1));
  }
  const double saved = static_cast<double>(CountOf(setting, UnitKind::kLayer)) * static_cast<double>(least);
  return std::clamp(state + saved - memory, 0.0, saved);
}

// Least seconds for a byte of saved tensors, by the operator that gives most bytes for its time. An operator takes its part of
// the layer's time, but of the launches only one of all operators' number; the less of the two is sound for both.
double BestSecondsPerByte(const Costs& costs, int kind, int64_t batch) {
  const double forward = LeastPerSample(batch, [&](double m) { return costs.ForwardSeconds(kind, UnitKind::kLayer, m); });
  const std::vector<Costs::OperatorCost>& operators = costs.Operators(kind);
  double best = kInfinity;
  for (const Costs::OperatorCost& op : operators) {
    const double part = std::min(op.forward_part, 1.0 / static_cast<double>(operators.size()));
    if (op.saved_bytes_per_sample > 0) best = std::min(best, part * forward / op.saved_bytes_per_sample);
  }
  return best;
}

std::vector<Work> AllWork(const Setting& setting) {
  const int64_t batch = setting.workload.global_batch;
  std::vector<Work> all;
  for (const UnitKind unit : kUnits) {
    Work& work = all.emplace_back();
    work.amount = static_cast<double>(batch * CountOf(setting, unit));
    for (int k = 0; k < setting.costs.num_kinds(); ++k)
      work.seconds.push_back(BestSecondsPerSample(setting.costs, k, unit, batch));
  }
  if (const double bytes = ForcedBytesPerSample(setting); bytes > 0) {
    Work& work = all.emplace_back();
    work.amount = bytes * static_cast<double>(batch);
    for (int k = 0; k < setting.costs.num_kinds(); ++k) work.seconds.push_back(BestSecondsPerByte(setting.costs, k, batch));
  }
  // What costs nothing, or cannot be priced, on some kind bounds nothing.
  std::erase_if(all, [](const Work& work) {
    return work.amount <= 0 ||
           std::any_of(work.seconds.begin(), work.seconds.end(), [](double s) { return !(s > 0) || !std::isfinite(s); });
  });
  return all;
}

// The linear program "least T such that all work is done and no device works longer than T" from below: for any prices of the
// types of work, T >= value of all work / what the devices can earn in a second.
double PricedBound(const std::vector<Work>& all, const std::vector<double>& devices_of_kind, const std::vector<double>& prices) {
  double value = 0, earned = 0;
  for (size_t w = 0; w < all.size(); ++w) value += all[w].amount * prices[w];
  for (size_t k = 0; k < devices_of_kind.size(); ++k) {
    double best = 0;
    for (size_t w = 0; w < all.size(); ++w) best = std::max(best, prices[w] / all[w].seconds[k]);
    earned += devices_of_kind[k] * best;
  }
  return earned > 0 ? value / earned : 0;
}

// Prices climb one at a time over the points where a kind of device changes to another type of work. Any result is a bound.
double ComputeBound(const std::vector<Work>& all, const std::vector<double>& devices_of_kind) {
  double best = 0;
  const size_t kinds = devices_of_kind.size();
  // Where all devices differ, some of them stand for the others.
  constexpr size_t kMostStarts = 16;
  const size_t stride = (kinds + kMostStarts - 1) / kMostStarts;
  for (size_t start = 0; start < kinds; start += std::max<size_t>(1, stride)) {
    if (devices_of_kind[start] <= 0) continue;
    std::vector<double> prices;
    for (const Work& work : all) prices.push_back(work.seconds[start]);
    double bound = PricedBound(all, devices_of_kind, prices);
    for (bool better = true; better;) {
      better = false;
      for (size_t w = 0; w < all.size(); ++w) {
        for (size_t k = 0; k < kinds; ++k) {
          std::vector<double> trial = prices;
          trial[w] = 0;
          for (size_t other = 0; other < all.size(); ++other) {
            if (other != w) trial[w] = std::max(trial[w], prices[other] / all[other].seconds[k] * all[w].seconds[k]);
          }
          const double value = PricedBound(all, devices_of_kind, trial);
          if (value > bound * (1 + 1e-12)) {
            bound = value;
            prices = std::move(trial);
            better = true;
          }
        }
      }
    }
    best = std::max(best, bound);
  }
  return best;
}

// One sample through all units, forward and the part of backward that cannot wait. Of n devices that share a unit by tensor
// parallelism one has at least the n-th part, and more takes no less; but one alone may take less than any part.
double LatencyBound(const Setting& setting) {
  const double least_share = 1.0 / std::min(setting.request.max_tp, setting.num_devices());
  double sum = 0;
  for (const UnitKind unit : kUnits) {
    double best = kInfinity;
    for (int k = 0; k < setting.costs.num_kinds(); ++k) {
      for (const double share : {least_share, 1.0}) {
        const double back =
            std::min(setting.costs.BackwardInputSeconds(k, unit, 1, share), setting.costs.BackwardSeconds(k, unit, 1, share));
        best = std::min(best, setting.costs.ForwardSeconds(k, unit, 1, share) + back);
      }
    }
    sum += best * static_cast<double>(CountOf(setting, unit));
  }
  return sum;
}

// One side of a cut of the network: part of all layer work that it can do in a second, and bytes a second across the cut.
struct Side {
  double part_per_second = 0, bytes_per_second = 0;
};

// What a side can do in T seconds, by how many samples' ends it holds: `e`, in batches, of those that it shares with the other
// side (docs/inside/lower-bound.md, "Cuts of the network"). Concave envelope: `free` without, `more` with `ends` of them.
struct SideWork {
  double free = 0, more = 0, ends = 0;
};

struct Cut {
  double boundary_bytes = 0;   // A: activations of the whole batch between two layers
  double parameter_bytes = 0;  // P: of all layers
  double layers = 0;

  // Most part of the layers' work for M = N + e A bytes, N what it exchanges each way: (M + p)^2 / (8 A P) with p = P / layers.
  double Little(double bytes) const {
    const double layer = parameter_bytes / layers;
    if (bytes < layer) return bytes / (2 * boundary_bytes * layers);
    return (bytes + layer) * (bytes + layer) / (8 * boundary_bytes * parameter_bytes);
  }
  // The M that Little() needs for a part.
  double BytesFor(double part) const {
    const double layer = parameter_bytes / layers, least = 2 * boundary_bytes * layers * part;
    return least < layer ? least : std::max(layer, std::sqrt(8 * boundary_bytes * parameter_bytes * part) - layer);
  }
  bool Unbound(double bytes, double ends) const { return bytes >= parameter_bytes || boundary_bytes * (2 - ends) <= bytes; }

  // Every shared sample crosses at least once each way, end or not.
  double MostEnds(double bytes) const { return std::min(1.0, bytes / boundary_bytes); }

  SideWork WorkOf(double all, double bytes) const {
    const double free = std::min(all, Little(bytes));
    if (Unbound(bytes, 0) || free >= all) return {all, 0, 0};
    const double ends = std::min(2 - bytes / boundary_bytes, (BytesFor(all) - bytes) / boundary_bytes);
    const double most = MostEnds(bytes);
    if (ends <= most) return {free, all - free, ends};
    return {free, std::min(all, Little(bytes + most * boundary_bytes)) - free, most};
  }
};

// Least T for which the sides can do all layers' work, or one side alone nearly all of it. The samples' two ends are dealt to the
// sides that gain most by them.
double NetworkBound(const std::vector<Side>& sides, const Cut& cut, double low) {
  const auto possible = [&](double seconds) {
    std::vector<SideWork> works;
    double sum = 0;
    for (const Side& side : sides) {
      const double bytes = side.bytes_per_second * seconds, all = side.part_per_second * seconds;
      const double ends = cut.MostEnds(bytes);
      if (all >= (cut.Unbound(bytes, ends) ? 1 : 1 - cut.Little(bytes + ends * cut.boundary_bytes))) return true;
      works.push_back(cut.WorkOf(all, bytes));
      sum += works.back().free;
    }
    std::stable_sort(works.begin(), works.end(),
                     [](const SideWork& a, const SideWork& b) { return a.more * b.ends > b.more * a.ends; });
    double left = 2;
    for (const SideWork& work : works) {
      if (work.more <= 0 || left <= 0) continue;
      sum += work.more * (work.ends > 0 ? std::min(1.0, left / work.ends) : 1);
      left -= work.ends;
    }
    return sum >= 1;
  };
  if (possible(low)) return low;
  double high = low;
  for (int i = 0; i < 64 && !possible(high); ++i) high *= 2;
  for (int i = 0; i < 60; ++i) (possible((low + high) / 2) ? high : low) = (low + high) / 2;
  return low;
}

// All that a node can send in a second: its NIC, or the links to the other nodes where those are less.
double NodeRate(const Cluster& cluster, size_t node) {
  const double nic = cluster.nodes[node].nic_bytes_per_second > 0 ? cluster.nodes[node].nic_bytes_per_second : kInfinity;
  if (cluster.node_bytes_per_second.empty()) return nic;
  double sum = 0;
  for (size_t other = 0; other < cluster.nodes.size(); ++other) {
    const double pair = cluster.node_bytes_per_second[node][other];
    if (other != node) sum += pair > 0 ? pair : cluster.nodes[other].nic_bytes_per_second;
  }
  return std::min(nic, sum);
}

double RegionRate(const Cluster& cluster, size_t region) {
  if (cluster.region_bytes_per_second.empty()) return kInfinity;
  double sum = 0;
  for (size_t other = 0; other < cluster.regions.size(); ++other) {
    const double rate = cluster.region_bytes_per_second[region][other];
    if (other != region) sum += rate > 0 ? rate : kInfinity;
  }
  return sum;
}

double CutBound(const Setting& setting, const std::vector<Work>& all, double low) {
  const Cluster& cluster = setting.cluster;
  const auto layers = std::find_if(all.begin(), all.end(), [&](const Work& work) {
    return work.amount == static_cast<double>(setting.workload.global_batch * setting.workload.model.num_layers);
  });
  if (layers == all.end()) return low;
  std::vector<Side> nodes, regions(cluster.regions.size());
  for (size_t n = 0; n < cluster.nodes.size(); ++n) {
    Side& side = nodes.emplace_back();
    side.bytes_per_second = NodeRate(cluster, n);
    for (const int d : cluster.nodes[n].devices) {
      side.part_per_second += 1 / (layers->seconds[setting.KindOf(d)] * layers->amount);
    }
    regions[cluster.nodes[n].region].part_per_second += side.part_per_second;
  }
  for (size_t r = 0; r < regions.size(); ++r) regions[r].bytes_per_second = RegionRate(cluster, r);
  const double boundary =
      static_cast<double>(setting.costs.BoundaryBytes(1)) * static_cast<double>(setting.workload.global_batch);
  const double count = static_cast<double>(setting.workload.model.num_layers);
  const double parameters =
      static_cast<double>(setting.costs.UnitElements(UnitKind::kLayer) * setting.costs.element_bytes()) * count;
  const Cut cut{boundary, parameters, count};
  if (nodes.size() > 1) low = NetworkBound(nodes, cut, low);
  if (regions.size() > 1) low = NetworkBound(regions, cut, low);
  return low;
}

}  // namespace

LowerBound FindLowerBound(const Setting& setting) {
  std::vector<double> devices_of_kind(static_cast<size_t>(setting.costs.num_kinds()));
  for (int d = 0; d < setting.num_devices(); ++d) devices_of_kind[setting.KindOf(d)] += 1;
  const std::vector<Work> all = AllWork(setting);
  LowerBound bound{
      ComputeBound(all, devices_of_kind),
      absl::StrCat("compute: ",
                   setting.num_devices() == 1 ? "the one device at its best rate"
                                              : absl::StrCat("all ", setting.num_devices(), " devices at their best rates"),
                   ForcedBytesPerSample(setting) > 0 ? ", and recomputation that the memory forces" : "")};
  if (const double latency = LatencyBound(setting); latency > bound.seconds) {
    bound = {latency, "latency: one sample passes all layers one after the other"};
  }
  if (const double network = CutBound(setting, all, bound.seconds); network > bound.seconds) {
    bound = {network, "network: too little crosses between nodes for all of them to help"};
  }
  bound.seconds *= kRounding;
  return bound;
}

}  // namespace motley::planner
