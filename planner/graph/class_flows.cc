#include "planner/graph/class_flows.h"

#include <algorithm>

#include "planner/graph/class_seconds.h"

namespace motley::planner {
namespace {

// Slices of the array that are whole on one rank of every unit: units of different widths, or with other shares, cut it
// differently.
struct Slice {
  double part = 0;            // of the array
  std::vector<int> ranks;     // one of each unit
  std::vector<double> parts;  // of each rank's own slice
};

constexpr double kSameCut = 1e-6;  // shares are rounded

std::vector<Slice> SlicesOf(const StageView& stage) {
  const std::vector<UnitPlan>& units = stage.plan->units;
  struct Held {
    double end, part;  // of a rank's slice, both of the array
  };
  std::vector<Held> held;  // by rank of the stage
  std::vector<double> cuts = {1};
  for (const UnitPlan& unit : units) {
    double sum = 0, end = 0;
    for (const RankPlan& rank : unit.ranks) sum += rank.tp_share;
    for (const RankPlan& rank : unit.ranks) {
      end += rank.tp_share / sum;
      held.push_back({end, rank.tp_share / sum});
      if (unit.ranks.size() > 1) cuts.push_back(end);
    }
  }
  std::sort(cuts.begin(), cuts.end());
  std::vector<Slice> slices;
  double begin = 0;
  for (const double cut : cuts) {
    if (cut - begin < kSameCut) continue;
    Slice& slice = slices.emplace_back();
    slice.part = cut - begin;
    size_t first = 0;
    for (const UnitPlan& unit : units) {
      const size_t last = first + unit.ranks.size() - 1;
      size_t r = first;
      while (r < last && held[r].end < (begin + cut) / 2) ++r;
      slice.ranks.push_back(stage.first_rank + static_cast<int>(r));
      slice.parts.push_back(std::min(1.0, slice.part / held[r].part));
      first = last + 1;
    }
    begin = cut;
  }
  return slices;
}

Flow RingOf(const Links& links, const PlanView& view, const Slice& slice, Collective collective, double bytes) {
  std::vector<int> devices;
  std::vector<double> shares;
  double sum = 0;
  for (size_t i = 0; i < slice.ranks.size(); ++i) {
    const RankView& rank = view.ranks[slice.ranks[i]];
    devices.push_back(rank.device);
    shares.push_back(rank.share * slice.parts[i]);
    sum += shares.back();
  }
  if (collective == Collective::kAllReduce || sum <= 0) return links.Ring(collective, devices, slice.part * bytes);
  for (double& share : shares) share /= sum;
  return links.Ring(collective, devices, slice.part * bytes, shares);
}

}  // namespace

std::vector<int> DevicesOf(const PlanView& view, const StageView& stage) {
  std::vector<int> devices;
  for (int r = 0; r < stage.num_ranks; ++r) devices.push_back(view.ranks[stage.first_rank + r].device);
  return devices;
}

Flow GroupFlow(const Links& links, const PlanView& view, const StageView& stage, Collective collective, double bytes) {
  const std::vector<Slice> slices = SlicesOf(stage);
  if (slices.size() == 1) return RingOf(links, view, slices[0], collective, bytes);
  std::vector<Flow> flows;
  for (const Slice& slice : slices) flows.push_back(RingOf(links, view, slice, collective, bytes));
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

Flow TiedFlow(const Setting& setting, const PlanView& view, int embedding_stage, int head_stage, Collective collective,
              double bytes) {
  struct Member {
    int node, device;
    double share;
  };
  std::vector<Member> members;
  double owned = 0;
  for (const int s : {embedding_stage, head_stage}) {
    const StageView& stage = view.stages[s];
    for (int r = stage.first_rank; r < stage.first_rank + stage.num_ranks; ++r) {
      const int device = view.ranks[r].device;
      members.push_back(
          {setting.cluster.devices[device].node, device, s == embedding_stage ? OwnedPart(view, view.ranks[r]) : 0.0});
      owned += members.back().share;
    }
  }
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.node < b.node; });
  std::vector<int> devices;
  std::vector<double> shares;
  for (const Member& member : members) {
    devices.push_back(member.device);
    if (owned > 0) shares.push_back(member.share / owned);
  }
  return setting.links.Ring(collective, devices, bytes, shares);
}

template <typename Cache, typename Make>
int ClassFlows::Cached(Cache* cache, const typename Cache::key_type& key, Make make) {
  const auto [at, added] = cache->try_emplace(key, -1);
  if (added) at->second = writer_->AddFlow(make());
  return at->second;
}

int ClassFlows::Group(int stage, Collective collective, int64_t elements) {
  return Cached(&group_, {stage, static_cast<int>(collective), elements}, [&] {
    const double bytes = static_cast<double>(elements) * setting_.costs.RingBytes(collective);
    return GroupFlow(setting_.links, view_, view_.stages[stage], collective, bytes);
  });
}

int ClassFlows::TensorParallel(int actor, int64_t microbatch) {
  return Cached(&tensor_parallel_, {actor, microbatch}, [&] {
    const ActorView& a = view_.actors[actor];
    const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(microbatch)));
    std::vector<Flow> flows;
    for (const int first : a.unit_ranks) {
      std::vector<int> devices;
      for (int r = 0; r < a.ranks_per_unit; ++r) devices.push_back(view_.ranks[first + r].device);
      flows.push_back(setting_.links.Ring(Collective::kAllReduce, devices, bytes));
    }
    return Links::Together(flows);
  });
}

int ClassFlows::Host(int actor, double bytes, bool to_host) {
  return Cached(&host_, {actor, bytes, to_host}, [&] {
    const ActorView& a = view_.actors[actor];
    std::vector<Flow> flows;
    for (const int first : a.unit_ranks) {
      for (int r = 0; r < a.ranks_per_unit; ++r) {
        const int device = view_.ranks[first + r].device;
        flows.push_back(to_host ? setting_.links.ToHost(device, bytes) : setting_.links.FromHost(device, bytes));
      }
    }
    return Links::Together(flows);
  });
}

}  // namespace motley::planner
