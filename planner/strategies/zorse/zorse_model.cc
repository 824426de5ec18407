#include "planner/strategies/zorse/zorse_model.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "planner/strategies/proportional_layers.h"
#include "planner/util/at.h"
#include "planner/util/infinity.h"

namespace motley::planner {

ZorseModel::ZorseModel(const Setting& setting) : setting_(setting) {
  const Costs& costs = setting.costs;
  const int64_t batch = setting.workload.global_batch;
  forward_.resize(At(costs.num_kinds()));
  backward_.resize(At(costs.num_kinds()));
  backward_again_.resize(At(costs.num_kinds()));
  for (int kind = 0; kind < costs.num_kinds(); ++kind) {
    for (int64_t m = 0; m <= batch; ++m) {
      const double samples = static_cast<double>(m);
      forward_[At(kind)].push_back(costs.ForwardSeconds(kind, UnitKind::kLayer, samples));
      backward_[At(kind)].push_back(costs.BackwardSeconds(kind, UnitKind::kLayer, samples));
      backward_again_[At(kind)].push_back(backward_[At(kind)].back() +
                                          costs.RecomputeSeconds(kind, UnitKind::kLayer, OpSet::All(), samples));
    }
  }
  layer_bytes_ = costs.UnitElements(UnitKind::kLayer) * costs.element_bytes();
}

ZorseGroup ZorseModel::Group(const std::vector<int>& devices) const {
  ZorseGroup group;
  group.devices = devices;
  group.slowest_rate = kInfinity;
  group.host_known = true;
  // Rates are equal within a pair of nodes, so one device of each node and a second one, if there is one, stand for all.
  std::map<int, std::vector<int>> by_node;
  for (int device : devices) {
    group.kinds.push_back(setting_.KindOf(device));
    const int node = setting_.cluster.devices[At(device)].node;
    std::vector<int>& some = by_node[node];
    if (some.size() < 2) some.push_back(device);
    group.host_known = group.host_known && setting_.cluster.nodes[At(node)].host_memory_bytes > 0;
  }
  std::vector<int> samples;
  for (const auto& [node, some] : by_node) samples.insert(samples.end(), some.begin(), some.end());
  for (size_t i = 0; i < samples.size(); ++i) {
    for (size_t j = i + 1; j < samples.size(); ++j) {
      group.slowest_rate = std::min(group.slowest_rate, setting_.links.Rate(samples[i], samples[j]));
    }
  }
  if (devices.size() > 1) {
    const auto line = [&](Collective collective, double* latency, double* per_byte) {
      const double bytes = static_cast<double>(layer_bytes_);
      const double once = setting_.links.SecondsAlone(setting_.links.Ring(collective, devices, bytes));
      const double twice = setting_.links.SecondsAlone(setting_.links.Ring(collective, devices, 2 * bytes));
      *per_byte = (twice - once) / bytes;
      *latency = std::max(0.0, 2 * once - twice);
    };
    line(Collective::kAllGather, &group.gather_latency_seconds, &group.gather_seconds_per_byte);
    line(Collective::kReduceScatter, &group.reduce_latency_seconds, &group.reduce_seconds_per_byte);
  }
  return group;
}

ZorseLoad::Member ZorseModel::Parts(int64_t batch, int64_t microbatch) const {
  if (batch == 0) return {};
  const int64_t parts = (batch + microbatch - 1) / microbatch;
  const int64_t size = (batch + parts - 1) / parts;
  return {batch / size, size, batch % size};
}

double ZorseModel::MemberSeconds(int kind, const ZorseLoad::Member& member, const Seconds& seconds) const {
  return static_cast<double>(member.count) * seconds[At(kind)][member.size] + seconds[At(kind)][member.last];
}

ZorseLoad ZorseModel::Split(const ZorseGroup& group, int64_t microbatch, bool whole_microbatches, bool recompute) const {
  const Seconds& back = recompute ? backward_again_ : backward_;
  const int64_t total = setting_.workload.global_batch;
  const int64_t step = whole_microbatches ? microbatch : 1;
  const int64_t steps = (total + step - 1) / step;  // to be handed out; the last may be smaller
  // Bounds a kind's batch by time: `take` steps at most.
  const auto seconds = [&](int kind, int64_t take) {
    const ZorseLoad::Member member = Parts(std::min(total, take * step), microbatch);
    return MemberSeconds(kind, member, forward_) + MemberSeconds(kind, member, back);
  };
  std::map<int, int64_t> devices_of_kind;
  for (int device : group.devices) ++devices_of_kind[setting_.KindOf(device)];
  const auto take_within = [&](int kind, double bound) {
    int64_t low = 0, high = steps;
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      if (seconds(kind, middle) <= bound)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  };
  double low = 0, high = 0;
  for (const auto& [kind, count] : devices_of_kind) high = std::max(high, seconds(kind, steps));
  for (int i = 0; i < 40 && low < high; ++i) {
    const double middle = (low + high) / 2;
    int64_t sum = 0;
    for (const auto& [kind, count] : devices_of_kind) sum += count * take_within(kind, middle);
    if (sum >= steps)
      high = middle;
    else
      low = middle;
  }
  std::map<int, int64_t> base;
  int64_t left = steps;
  for (const auto& [kind, count] : devices_of_kind) {
    base[kind] = take_within(kind, low);
    left -= count * base[kind];
  }
  std::vector<int64_t> take;
  for (int device : group.devices) take.push_back(base[setting_.KindOf(device)]);
  // Fewer than two a device are left: each goes to the one that would then take least, the first of several.
  using Next = std::pair<double, size_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  for (size_t i = 0; i < take.size() && left > 0; ++i) queue.emplace(seconds(group.kinds[i], take[i] + 1), i);
  for (; left > 0; --left) {
    const size_t i = queue.top().second;
    queue.pop();
    ++take[i];
    queue.emplace(seconds(group.kinds[i], take[i] + 1), i);
  }
  for (int64_t& batch : take) batch *= step;
  return LoadOf(group, take, microbatch, recompute);
}

ZorseLoad ZorseModel::LoadOf(const ZorseGroup& group, const std::vector<int64_t>& batches, int64_t microbatch,
                             bool recompute) const {
  const Seconds& back = recompute ? backward_again_ : backward_;
  ZorseLoad load;
  load.recompute = recompute;
  int64_t remaining = setting_.workload.global_batch;
  std::map<int, size_t> largest;
  for (size_t i = 0; i < batches.size(); ++i) {
    const int kind = setting_.KindOf(group.devices[i]);
    const int64_t batch = std::min(remaining, batches[i]);
    remaining -= batch;
    const ZorseLoad::Member member = Parts(batch, microbatch);
    load.members.push_back(member);
    const auto [slot, is_new] = largest.try_emplace(kind, i);
    if (!is_new && batch > load.members[slot->second].batch()) slot->second = i;
    load.forward_seconds = std::max(load.forward_seconds, MemberSeconds(kind, member, forward_));
    load.backward_seconds = std::max(load.backward_seconds, MemberSeconds(kind, member, back));
    load.first_forward_seconds = std::max(load.first_forward_seconds, forward_[At(kind)][member.size]);
    load.first_backward_seconds = std::max(load.first_backward_seconds, back[At(kind)][member.size]);
  }
  for (const auto& [kind, member] : largest) load.largest.push_back(member);
  return load;
}

double ZorseModel::ExtraSeconds(const ZorseLoad& load, const ZorseGroup& group, UnitKind unit) const {
  double worst = 0;
  for (size_t i : load.largest) {
    const int kind = setting_.KindOf(group.devices[i]);
    const ZorseLoad::Member& member = load.members[i];
    const auto pass = [&](double samples) {
      return setting_.costs.ForwardSeconds(kind, unit, samples) + setting_.costs.BackwardSeconds(kind, unit, samples);
    };
    worst = std::max(worst, static_cast<double>(member.count) * pass(static_cast<double>(member.size)) +
                                pass(static_cast<double>(member.last)));
  }
  return worst;
}

std::vector<int64_t> ZorseModel::SplitLayers(const std::vector<const ZorseLoad*>& loads, int64_t granularity) const {
  std::vector<double> speeds;
  for (const ZorseLoad* load : loads) speeds.push_back(1 / load->layer_seconds());
  std::vector<int64_t> layers = ProportionalLayers(setting_.workload.model.num_layers / granularity, speeds);
  for (int64_t& count : layers) count *= granularity;
  return layers;
}

double ZorseModel::Hidden(double compute_seconds, double transfer_seconds) const {
  return std::max(compute_seconds, transfer_seconds) +
         (1 - setting_.links.HiddenPartOfAll()) * std::min(compute_seconds, transfer_seconds);
}

// Of one ministage and pass on the slowest member's copy lane: its part of the parameters, its boundaries.
double ZorseModel::CopySeconds(const ZorseChoice& choice, size_t stage) const {
  const ZorseGroup& group = *choice.groups[stage];
  if (!group.host_known) return 0;
  const double layers = static_cast<double>(choice.layers[stage]) / static_cast<double>(choice.ministages);
  double worst = 0;
  for (size_t member : choice.loads[stage]->largest) {
    double bytes = 0;
    if (choice.offload.parameters)
      bytes += layers * static_cast<double>(layer_bytes_) / static_cast<double>(group.devices.size());
    if (choice.offload.activations) {
      bytes += layers * static_cast<double>(
                            setting_.costs.BoundaryBytes(static_cast<double>(choice.loads[stage]->members[member].batch())));
    }
    const ClusterNode& node = setting_.cluster.nodes[At(setting_.cluster.devices[At(group.devices[member])].node)];
    if (node.host_link_bytes_per_second > 0) worst = std::max(worst, bytes / node.host_link_bytes_per_second);
  }
  return worst;
}

// What one stage's ministage costs beside the others' and while it waits for the first microbatch.
ZorseModel::StageSeconds ZorseModel::PriceStage(const ZorseChoice& choice, size_t stage) const {
  const ZorseGroup& group = *choice.groups[stage];
  const ZorseLoad& load = *choice.loads[stage];
  const size_t stages = choice.groups.size();
  const double v = static_cast<double>(choice.ministages);
  const double layers = static_cast<double>(choice.layers[stage]) / v;
  const double bytes = layers * static_cast<double>(layer_bytes_);
  StageSeconds seconds;
  seconds.gather = group.gather_latency_seconds + bytes * group.gather_seconds_per_byte;
  const double reduced =
      bytes * setting_.costs.RingBytes(Collective::kReduceScatter) / static_cast<double>(setting_.costs.element_bytes());
  seconds.reduce = group.reduce_latency_seconds + reduced * group.reduce_seconds_per_byte;
  const double embedding = stage == 0 ? ExtraSeconds(load, group, UnitKind::kEmbedding) / v : 0;
  const double head = stage + 1 == stages ? ExtraSeconds(load, group, UnitKind::kHead) / v : 0;
  // The next stage's boundary; the last sends to the first where ministages wrap around.
  double hop = 0, traffic = 0;
  if (stages > 1 && (stage + 1 < stages || choice.ministages > 1)) {
    const int from = group.devices[0], to = choice.groups[(stage + 1) % stages]->devices[0];
    const double rate = setting_.links.Rate(from, to);
    const bool one_node = setting_.cluster.devices[At(from)].node == setting_.cluster.devices[At(to)].node;
    const size_t lanes = one_node ? std::min(group.devices.size(), choice.groups[(stage + 1) % stages]->devices.size()) : 1;
    hop = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(choice.microbatch))) / rate;
    traffic = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(setting_.workload.global_batch))) / rate /
              static_cast<double>(lanes);
  }
  const double copy = CopySeconds(choice, stage);
  // A backward pass takes two thirds of what an embedding takes, and all that a head does.
  seconds.forward = Hidden(layers * load.forward_seconds + embedding / 3, std::max({seconds.gather, copy, traffic}));
  seconds.backward = Hidden(layers * load.backward_seconds + embedding * 2 / 3 + head,
                            std::max({seconds.gather + seconds.reduce, copy, traffic}));
  seconds.first_forward = layers * load.first_forward_seconds + hop;
  seconds.first_backward = layers * load.first_backward_seconds + hop;
  const double elements = static_cast<double>(choice.layers[stage] * setting_.costs.UnitElements(UnitKind::kLayer)) /
                          static_cast<double>(group.devices.size());
  for (size_t member : load.largest) {
    const int kind = setting_.KindOf(group.devices[member]);
    seconds.optimizer = std::max(seconds.optimizer, setting_.costs.OptimizerSeconds(kind, elements / v));
  }
  return seconds;
}

double ZorseModel::StepSeconds(const ZorseChoice& choice) const {
  double forward = 0, backward = 0, forward_ring = 0, backward_ring = 0, slowest = 0, slowest_fill = 0, startup = 0;
  for (size_t s = 0; s < choice.groups.size(); ++s) {
    const StageSeconds stage = PriceStage(choice, s);
    const double fill = stage.first_forward + stage.first_backward;
    if (stage.forward + stage.backward > slowest) slowest = stage.forward + stage.backward, slowest_fill = fill;
    forward = std::max(forward, stage.forward);
    backward = std::max(backward, stage.backward);
    forward_ring += stage.first_forward;
    backward_ring += stage.first_backward;
    startup += fill;
    if (s == 0) startup += stage.gather + stage.reduce + stage.optimizer;
  }
  startup -= slowest_fill;  // the slowest stage's own microbatch is part of its ministage
  if (choice.ministages > 1) forward = std::max(forward, forward_ring), backward = std::max(backward, backward_ring);
  return (forward + backward) * static_cast<double>(choice.ministages) + startup;
}

}  // namespace motley::planner
