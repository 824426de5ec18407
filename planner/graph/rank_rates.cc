#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/model/parameters.h"
#include "common/program/shard_ranges.h"
#include "planner/graph/group_flows.h"
#include "planner/graph/program_rates.h"
#include "planner/lowering/model_blocks.h"

namespace motley::planner {
namespace {

std::vector<ActorView> EachRank(const PlanView& view) {
  std::vector<ActorView> members;
  for (int r = 0; r < static_cast<int>(view.ranks.size()); ++r) {
    members.push_back({.stage = view.ranks[r].stage, .first_rank = r, .unit_ranks = {r}});
  }
  return members;
}

// Ranks own ranges of elements.
class RankRates : public ProgramRates {
 public:
  RankRates(const Setting& setting, const PlanView& view, const std::vector<Program>& programs, const Ownership& ownership,
            const std::vector<ModelSlice>& slices, GraphWriter* writer)
      : ProgramRates(setting, view, programs, EachRank(view), UnitsAsBlocks(setting).parts, writer),
        ownership_(ownership),
        slices_(slices),
        owned_(ownership.NumOwnedByRank(programs.size())),
        runs_(programs.size()) {
    for (const std::vector<int32_t>& group : programs.front().groups) {
      std::vector<int32_t>& places = place_in_.emplace_back(programs.size(), -1);
      for (size_t i = 0; i < group.size(); ++i) places[static_cast<size_t>(group[i])] = static_cast<int32_t>(i);
    }
  }

  // Of the ranges that the group's ranks own, or of what `root` has, all units at once.
  int Ring(const RingWork& what) override {
    const auto& [collective, group, unit, more_units, buffer, elements, root, program] = what;
    const RingKey key = {collective, group, unit, more_units, InUnit(what), elements.count, root};
    const auto [at, added] = rings_.try_emplace(key, -1);
    if (!added) return at->second;
    const std::vector<int32_t>& members = programs()[0].groups[group];
    std::vector<double> shares(members.size(), 0);
    double whole = 0;
    for (int32_t u = unit; u <= unit + more_units; ++u) whole += AddShares(what, u, &shares);
    std::vector<int> devices;
    for (const int32_t rank : members) devices.push_back(view().ranks[rank].device);
    const double bytes = whole * setting().costs.RingBytes(collective);
    return at->second = writer().AddFlow(RingByParts(setting().links, collective, devices, bytes, std::move(shares)));
  }

 protected:
  double Owned(size_t r, const RankView&, bool, int32_t unit, int32_t more) const override {
    if (unit < 0) return owned_[r];
    int64_t owned = 0;
    for (int32_t u = unit; u <= unit + more; ++u) owned += ownership_.NumOwned(u, static_cast<int32_t>(r));
    return static_cast<double>(owned);
  }
  std::optional<OpSet> Again(const ComputeSpan& what) const override { return OpSet::OfProgram(what.operators); }

 private:
  const std::vector<UnitBuffer>& BuffersOf(const RingWork& what) const {
    const Program& program = programs()[what.program];
    return what.collective == Collective::kAllGather ? program.parameter_buffers : program.gradient_buffers;
  }
  // Whether the unit comes from ranks' shards or goes to them; else it is what they own.
  bool IsOfShards(const RingWork& what, int32_t unit) const {
    const std::vector<UnitBuffer>& buffers = BuffersOf(what);
    if (buffers[static_cast<size_t>(what.buffer)].IsShard()) return false;
    return std::any_of(buffers.begin(), buffers.end(), [unit](const UnitBuffer& b) { return b.IsShard() && b.home_of == unit; });
  }
  // Runs of the unit that the rank has in the array.
  const std::vector<SliceRun>& RunsIn(const RingWork& what, int32_t unit) {
    RunsOfRank& runs = runs_[what.program];
    if (runs.whole.empty()) {
      for (const UnitSpec& spec : setting().costs.layout()) runs.whole.push_back(RunsOf(spec, slices_[what.program]));
      runs.shards = ShardsByUnit(programs()[what.program], ownership_, runs.whole);
    }
    const bool shard = BuffersOf(what)[static_cast<size_t>(what.buffer)].IsShard();
    return (shard ? runs.shards : runs.whole)[static_cast<size_t>(unit)];
  }
  // Where the elements begin in the unit's own array: the same for all members of the group.
  int64_t InUnit(const RingWork& what) {
    if (what.elements.whole()) return 0;
    for (const SliceRun& run : RunsIn(what, what.unit)) {
      if (what.elements.first < run.in_slice + run.elements) return what.elements.first - run.in_slice + run.in_unit;
    }
    return -1;  // not reached: programs are held to their ranks' slices
  }
  // What each of the group has of the unit's elements, which there are.
  double AddShares(const RingWork& what, int32_t unit, std::vector<double>* shares) {
    const std::vector<int32_t>& place_of = place_in_[what.group];
    const OwnedRanges& owned = ownership_.Of(unit);
    const OwnedRanges had = IsOfShards(what, unit) ? ShardRanges(owned, programs()[0].groups[what.group]) : owned;
    int64_t whole = 0;
    for (const SliceRun& run : RunsIn(what, unit)) {
      const int64_t first = what.elements.whole() ? run.in_slice : std::max(run.in_slice, what.elements.first);
      const int64_t last = run.in_slice + run.elements, end = what.elements.whole() ? last : std::min(last, what.elements.end());
      if (first >= end) continue;
      whole += end - first;
      if (what.root != -1) continue;
      const int64_t in_unit = run.in_unit - run.in_slice;
      for (const OwnedRange& range : had) {
        const int64_t part = std::min(in_unit + end, range.end) - std::max(in_unit + first, range.begin);
        const int32_t place = place_of[range.rank];
        if (part > 0 && place >= 0) (*shares)[static_cast<size_t>(place)] += static_cast<double>(part);
      }
    }
    if (what.root != -1) (*shares)[static_cast<size_t>(place_of[what.root])] += static_cast<double>(whole);
    return static_cast<double>(whole);
  }

  // By unit; none yet where `whole` is empty.
  struct RunsOfRank {
    std::vector<std::vector<SliceRun>> whole, shards;
  };

  const Ownership& ownership_;
  const std::vector<ModelSlice>& slices_;       // by rank
  const std::vector<double> owned_;             // by rank
  std::vector<std::vector<int32_t>> place_in_;  // by group and rank: its place in the ring; -1 = not there
  std::vector<RunsOfRank> runs_;                // by rank
  using RingKey = std::tuple<Collective, int32_t, int32_t, int32_t, int64_t, int64_t, int32_t>;
  std::map<RingKey, int> rings_;  // by group, units, elements and root
};

}  // namespace

std::unique_ptr<ProgramRates> RatesOfRanks(const Setting& setting, const PlanView& view, const std::vector<Program>& programs,
                                           const Ownership& ownership, const std::vector<ModelSlice>& slices,
                                           GraphWriter* writer) {
  return std::make_unique<RankRates>(setting, view, programs, ownership, slices, writer);
}

}  // namespace motley::planner
