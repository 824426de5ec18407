#include "planner/lowering/step_lowering_flows.h"

#include <algorithm>
#include <cmath>

namespace motley::planner {
namespace {

// The ranks at this position of the stage's units, where a unit is as wide.
std::vector<int> RanksAt(const StageView& stage, size_t position) {
  std::vector<int> ranks;
  int first = stage.first_rank;
  for (const UnitPlan& unit : stage.plan->units) {
    if (position < unit.ranks.size()) ranks.push_back(first + static_cast<int>(position));
    first += static_cast<int>(unit.ranks.size());
  }
  return ranks;
}

Flow RingOf(const Links& links, const PlanView& view, const std::vector<int>& ranks, Collective collective, double bytes) {
  std::vector<int> devices;
  std::vector<double> shares;
  double sum = 0;
  for (const int r : ranks) {
    const RankView& rank = view.ranks[static_cast<size_t>(r)];
    devices.push_back(rank.device);
    shares.push_back(rank.share);
    sum += rank.share;
  }
  if (collective == Collective::kAllReduce || sum <= 0) return links.Ring(collective, devices, bytes);
  for (double& share : shares) share /= sum;
  return links.Ring(collective, devices, bytes, shares);
}

}  // namespace

std::vector<int> DevicesOf(const PlanView& view, const StageView& stage) {
  std::vector<int> devices;
  for (int r = 0; r < stage.num_ranks; ++r) devices.push_back(view.ranks[static_cast<size_t>(stage.first_rank + r)].device);
  return devices;
}

Flow GroupFlow(const Links& links, const PlanView& view, const StageView& stage, Collective collective, double bytes) {
  size_t narrowest = stage.plan->units[0].ranks.size(), widest = narrowest;
  for (const UnitPlan& unit : stage.plan->units) {
    narrowest = std::min(narrowest, unit.ranks.size());
    widest = std::max(widest, unit.ranks.size());
  }
  if (narrowest != widest) {
    double share = 0;
    for (const UnitPlan& unit : stage.plan->units) {
      for (const RankPlan& rank : unit.ranks) share = std::max(share, rank.tp_share);
    }
    return RingOf(links, view, RanksAt(stage, 0), collective, bytes * share);
  }
  if (widest == 1) return RingOf(links, view, RanksAt(stage, 0), collective, bytes);
  std::vector<Flow> flows;
  for (size_t position = 0; position < widest; ++position) {
    const std::vector<int> ranks = RanksAt(stage, position);
    double slice = 0;
    for (const int r : ranks) slice = std::max(slice, view.ranks[static_cast<size_t>(r)].plan->tp_share);
    flows.push_back(RingOf(links, view, ranks, collective, bytes * slice));
  }
  return Links::Together(flows);
}

Flow AcrossFlow(const Links& links, const std::vector<std::vector<int>>& sets, Collective collective, double bytes) {
  size_t rings = sets.empty() ? 0 : sets[0].size();
  for (const std::vector<int>& set : sets) rings = std::min(rings, set.size());
  std::vector<Flow> flows;
  for (size_t i = 0; i < rings; ++i) {
    std::vector<int> devices;
    for (const std::vector<int>& set : sets) devices.push_back(set[i * set.size() / rings]);
    flows.push_back(links.Ring(collective, devices, bytes / static_cast<double>(rings)));
  }
  return Links::Together(flows);
}

template <typename Cache, typename Make>
int PlanFlows::Cached(Cache* cache, const typename Cache::key_type& key, Make make) {
  const auto [at, added] = cache->try_emplace(key, -1);
  if (added) at->second = writer_->AddFlow(make());
  return at->second;
}

int PlanFlows::Group(int stage, Collective collective, int64_t elements) {
  return Cached(&group_, {stage, static_cast<int>(collective), elements}, [&] {
    const double bytes = static_cast<double>(elements * setting_.costs.element_bytes());
    return GroupFlow(setting_.links, view_, view_.stages[static_cast<size_t>(stage)], collective, bytes);
  });
}

int PlanFlows::TensorParallel(int actor, int64_t microbatch) {
  return Cached(&tensor_parallel_, {actor, microbatch}, [&] {
    const ActorView& a = view_.actors[static_cast<size_t>(actor)];
    const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(microbatch)));
    std::vector<Flow> flows;
    for (const int first : a.unit_ranks) {
      std::vector<int> devices;
      for (int r = 0; r < a.ranks_per_unit; ++r) devices.push_back(view_.ranks[static_cast<size_t>(first + r)].device);
      flows.push_back(setting_.links.Ring(Collective::kAllReduce, devices, bytes));
    }
    return Links::Together(flows);
  });
}

void PlanFlows::AddSends(const Samples& from, const Samples& to, std::vector<Flow>* flows) const {
  const ActorView &source = view_.actors[static_cast<size_t>(from.actor)], &target = view_.actors[static_cast<size_t>(to.actor)];
  for (int64_t i = 0; i < source.units(); ++i) {
    const int64_t begin = from.begin - to.begin + i * from.size, end = begin + from.size;  // in the target's microbatch
    for (int64_t j = std::max<int64_t>(0, begin / to.size); j < target.units() && j * to.size < end; ++j) {
      const int64_t samples = std::min(end, (j + 1) * to.size) - std::max(begin, j * to.size);
      if (samples <= 0) continue;
      const int a = view_.ranks[static_cast<size_t>(source.unit_ranks[static_cast<size_t>(i)])].device;
      const int b = view_.ranks[static_cast<size_t>(target.unit_ranks[static_cast<size_t>(j)])].device;
      const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(samples)));
      flows->push_back(setting_.links.PointToPoint(a, b, bytes));
    }
  }
}

int PlanFlows::Send(const Samples& from, std::span<const Samples> to) {
  SendKey key = {from.actor, from.size};
  for (const Samples& target : to) {
    for (const int64_t part : {int64_t{target.actor}, target.size, target.begin - from.begin}) key.push_back(part);
  }
  return Cached(&send_, key, [&] {
    std::vector<Flow> flows;
    for (const Samples& target : to) AddSends(from, target, &flows);
    return Links::Together(flows);
  });
}

int PlanFlows::Host(int actor, double bytes, bool to_host) {
  return Cached(&host_, {actor, bytes, to_host}, [&] {
    const ActorView& a = view_.actors[static_cast<size_t>(actor)];
    std::vector<Flow> flows;
    for (const int first : a.unit_ranks) {
      for (int r = 0; r < a.ranks_per_unit; ++r) {
        const int device = view_.ranks[static_cast<size_t>(first + r)].device;
        flows.push_back(to_host ? setting_.links.ToHost(device, bytes) : setting_.links.FromHost(device, bytes));
      }
    }
    return Links::Together(flows);
  });
}

}  // namespace motley::planner
