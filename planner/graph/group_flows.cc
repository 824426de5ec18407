#include "planner/graph/group_flows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/lowering/model_blocks.h"

namespace motley::planner {
namespace {

// Slices of the array that are whole on one rank of every unit: units of different widths, or with other shares, cut it
// differently.
struct Slice {
  double part = 0;             // of the array
  std::vector<int> devices;    // one of each unit
  std::vector<double> shares;  // what of the state each has in it
};

constexpr double kSameCut = 1e-6;  // shares are rounded

std::vector<Slice> SlicesOf(const PlanView& view, const StageView& stage) {
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
      const RankView& rank = view.ranks[stage.first_rank + static_cast<int>(r)];
      slice.devices.push_back(rank.device);
      slice.shares.push_back(rank.share * std::min(1.0, slice.part / held[r].part));
      first = last + 1;
    }
    begin = cut;
  }
  return slices;
}

}  // namespace

Flow RingByParts(const Links& links, Collective collective, std::span<const int> devices, double bytes,
                 std::vector<double> parts) {
  const double all = std::accumulate(parts.begin(), parts.end(), 0.0);
  for (double& part : parts) part /= all;
  if (collective == Collective::kAllReduce || all <= 0) parts.clear();
  return links.Ring(collective, devices, bytes, parts);
}

Flow GroupFlow(const Links& links, const PlanView& view, const StageView& stage, Collective collective, double bytes) {
  std::vector<Flow> flows;
  for (Slice& slice : SlicesOf(view, stage)) {
    flows.push_back(RingByParts(links, collective, slice.devices, slice.part * bytes, std::move(slice.shares)));
  }
  return flows.size() == 1 ? std::move(flows[0]) : Links::Together(flows);
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

std::vector<std::vector<int>> SetsOf(const PlanView& view, std::span<const int> stages, int sharded_from) {
  std::vector<std::vector<int>> sets;
  for (const int s : stages) {
    const StageView& stage = view.stages[s];
    const bool shards = stage.state.ZeroAsRun() >= sharded_from;
    for (int r = stage.first_rank; r < stage.first_rank + stage.num_ranks; ++r) {
      const bool begins = r == stage.first_rank || (!shards && view.ranks[r].unit != view.ranks[r - 1].unit);
      if (begins) sets.emplace_back();
      sets.back().push_back(view.ranks[r].device);
    }
  }
  return sets;
}

Flow TiedFlow(const Links& links, const PlanView& view, int embedding_stage, int head_stage, Collective collective,
              double bytes) {
  std::vector<int> devices;
  std::vector<double> parts;
  for (const int s : {embedding_stage, head_stage}) {
    const StageView& stage = view.stages[s];
    for (int r = stage.first_rank; r < stage.first_rank + stage.num_ranks; ++r) {
      devices.push_back(view.ranks[r].device);
      parts.push_back(s == embedding_stage ? OwnedPart(view, view.ranks[r]) : 0);
    }
  }
  return RingByParts(links, collective, devices, bytes, std::move(parts));
}

double OwnedPart(const PlanView& view, const RankView& rank) {
  const StageView& stage = view.stages[rank.stage];
  const double part = stage.plan->zero_stage == 0 ? rank.plan->tp_share : rank.share;
  return view.pipelines_zero_stage > 0 ? part / static_cast<double>(view.pipelines.size()) : part;
}

}  // namespace motley::planner
