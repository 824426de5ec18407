#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/model/parameters.h"
#include "common/program/shard_ranges.h"
#include "planner/graph/program_rates.h"
#include "planner/memory/program_memory.h"

namespace motley::planner {
namespace {

class RankRates : public ProgramRates {
 public:
  RankRates(const Setting& setting, const PlanView& view, const std::vector<Program>& programs, const Ownership& ownership,
            const std::vector<ModelSlice>& slices, GraphWriter* writer)
      : setting_(setting),
        view_(view),
        programs_(programs),
        ownership_(ownership),
        slices_(slices),
        owned_(ownership.NumOwnedByRank(programs.size())),
        writer_(*writer),
        runs_(programs.size()) {
    for (const std::vector<int32_t>& group : programs.front().groups) {
      std::vector<int32_t>& places = place_in_.emplace_back(programs.size(), -1);
      for (size_t i = 0; i < group.size(); ++i) places[static_cast<size_t>(group[i])] = static_cast<int32_t>(i);
    }
  }

  Actor ActorOf(size_t r) const override {
    const RankView& rank = view_.ranks[r];
    const StageView& stage = view_.stages[rank.stage];
    return {rank.plan->device.value(), stage.pipeline, stage.index, 1, rank.device, UnitText(view_, rank)};
  }

  // ---- compute ----

  double Seconds(size_t r, const ComputeSpan& what) override {
    const RankView& rank = view_.ranks[r];
    double seconds = 0;
    for (int32_t unit = what.unit; unit <= what.unit + what.more_units; ++unit) {
      const UnitKind kind = UnitKindOf(programs_[r], unit);
      for (int32_t m = what.microbatch; m <= what.microbatch + what.more_microbatches; ++m) {
        seconds += ComputeSeconds(setting_.costs, rank.kind, rank.plan->tp_share, what.work, kind, SamplesOf(r, m));
      }
    }
    return seconds;
  }
  // A rank alone sums nothing.
  InnerSums SumsInside(std::span<const RankInstruction> members, const ComputeSpan& what) override {
    InnerSums result;
    if (members.size() == 1) return result;
    const size_t first = members.front().rank;
    int sums = 0;
    for (int32_t unit = what.unit; unit <= what.unit + what.more_units; ++unit) {
      sums += planner::SumsInside(what.work, UnitKindOf(programs_[first], unit));
    }
    for (int32_t m = what.microbatch; sums > 0 && m <= what.microbatch + what.more_microbatches; ++m) {
      const int64_t bytes = setting_.costs.BoundaryBytes(SamplesOf(first, m));
      result.push_back({ActivationSum(members, bytes), static_cast<double>(sums), m});
    }
    return result;
  }
  double OptimizerSeconds(size_t r, const OptimizerStep& op) override {
    const double owned = op.first_unit == -1 ? owned_[r] : static_cast<double>(Owned(r, op.first_unit, op.more_units));
    return setting_.costs.OptimizerSeconds(view_.ranks[r].kind, owned);
  }

  // ---- collectives ----

  // Of the ranges that the group's ranks own, or of what `root` has, all units at once.
  int Ring(const RingWork& what) override {
    const auto& [collective, group, unit, more_units, buffer, elements, root, program] = what;
    const RingKey key = {collective, group, unit, more_units, InUnit(what), elements.count, root};
    const auto [at, added] = rings_.try_emplace(key, -1);
    if (!added) return at->second;
    std::vector<double> shares(programs_[0].groups[group].size(), 0);
    double whole = 0, owned = 0;
    for (int32_t u = unit; u <= unit + more_units; ++u) whole += AddShares(what, u, &shares);
    for (const double share : shares) owned += share;
    for (double& share : shares) share /= owned;
    if (collective == Collective::kAllReduce || owned == 0) shares.clear();  // each owns all
    const std::vector<int32_t>& members = programs_[0].groups[group];
    const double bytes = whole * setting_.costs.RingBytes(collective);
    std::vector<int> devices;
    for (const int32_t rank : members) devices.push_back(view_.ranks[rank].device);
    return at->second = writer_.AddFlow(setting_.links.Ring(collective, devices, bytes, shares));
  }
  int Scalars() override {
    std::vector<int> devices;
    for (const RankView& rank : view_.ranks) devices.push_back(rank.device);
    return writer_.AddFlow({setting_.links.TreeSeconds(devices), {}});
  }
  int Exchange(std::span<const RankInstruction> members, const BroadcastActivation& op) override {
    const int64_t bytes = setting_.costs.BoundaryBytes(SamplesOf(members.front().rank, op.microbatch));
    std::vector<double> shares;
    for (const RankInstruction& member : members) shares.push_back(member.rank == static_cast<size_t>(op.root) ? 1 : 0);
    return writer_.AddFlow(setting_.links.Ring(Collective::kAllGather, DevicesOf(members), static_cast<double>(bytes), shares));
  }
  int Exchange(std::span<const RankInstruction> members, const AllReduceActivation& op) override {
    const double samples = SamplesOf(members.front().rank, op.microbatch);
    const Costs& costs = setting_.costs;
    return ActivationSum(members, op.of == Exchanged::kRows ? costs.RowBytes(samples) : costs.BoundaryBytes(samples));
  }

  // ---- hand-overs and copies ----

  int HandOver(const HandOverPiece& piece) override {
    const auto [at, added] = hand_overs_.try_emplace({piece.from, piece.to, piece.samples}, -1);
    if (!added) return at->second;
    const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(piece.samples)));
    const int from = view_.ranks[piece.from].device, to = view_.ranks[piece.to].device;
    return at->second = writer_.AddFlow(setting_.links.PointToPoint(from, to, bytes));
  }
  UnitRange UnitsWith(size_t, int32_t, int64_t, int64_t) const override { return {}; }

  int Copy(size_t r, const OffloadActivation& op) override { return ToHost(r, InputBytes(r, op)); }
  int Copy(size_t r, const PrefetchActivation& op) override { return FromHost(r, InputBytes(r, op)); }
  int Copy(size_t r, const OffloadState& op) override { return ToHost(r, StateBytes(r, op.unit, op.more_units, op.of)); }
  int Copy(size_t r, const PrefetchState& op) override { return FromHost(r, StateBytes(r, op.unit, op.more_units, op.of)); }

 private:
  double SamplesOf(size_t r, int32_t microbatch) const {
    return static_cast<double>(programs_[r].microbatches[microbatch].samples);
  }
  // Elements of the units that the rank owns.
  int64_t Owned(size_t r, int32_t unit, int32_t more) const {
    int64_t owned = 0;
    for (int32_t u = unit; u <= unit + more; ++u) owned += ownership_.NumOwned(u, static_cast<int32_t>(r));
    return owned;
  }
  int ActivationSum(std::span<const RankInstruction> members, int64_t bytes) {
    return writer_.AddFlow(setting_.links.Ring(Collective::kAllReduce, DevicesOf(members), static_cast<double>(bytes)));
  }
  std::vector<int> DevicesOf(std::span<const RankInstruction> members) const {
    std::vector<int> devices;
    for (const RankInstruction& member : members) devices.push_back(view_.ranks[member.rank].device);
    return devices;
  }
  const std::vector<UnitBuffer>& BuffersOf(const RingWork& what) const {
    const Program& program = programs_[what.program];
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
      for (const UnitSpec& spec : setting_.costs.layout()) runs.whole.push_back(RunsOf(spec, slices_[what.program]));
      runs.shards = ShardsByUnit(programs_[what.program], ownership_, runs.whole);
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
    const OwnedRanges had = IsOfShards(what, unit) ? ShardRanges(owned, programs_[0].groups[what.group]) : owned;
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

  int ToHost(size_t r, double bytes) { return writer_.AddFlow(setting_.links.ToHost(view_.ranks[r].device, bytes)); }
  int FromHost(size_t r, double bytes) { return writer_.AddFlow(setting_.links.FromHost(view_.ranks[r].device, bytes)); }
  template <typename Op>
  double InputBytes(size_t r, const Op& op) const {
    int64_t bytes = 0;
    for (int32_t m = op.microbatch; m <= op.microbatch + op.more_microbatches; ++m) {
      bytes += setting_.costs.BoundaryBytes(SamplesOf(r, m)) * (op.more_units + 1);
    }
    return static_cast<double>(bytes);
  }
  double StateBytes(size_t r, int32_t unit, int32_t more, State of) const {
    const Costs& costs = setting_.costs;
    const int64_t each = of == State::kParameters ? costs.element_bytes() : costs.optimizer_bytes_per_element();
    return static_cast<double>(Owned(r, unit, more) * each);
  }

  // By unit; none yet where `whole` is empty.
  struct RunsOfRank {
    std::vector<std::vector<SliceRun>> whole, shards;
  };

  const Setting& setting_;
  const PlanView& view_;
  const std::vector<Program>& programs_;
  const Ownership& ownership_;
  const std::vector<ModelSlice>& slices_;  // by rank
  const std::vector<double> owned_;        // by rank
  GraphWriter& writer_;
  std::vector<std::vector<int32_t>> place_in_;  // by group and rank: its place in the ring; -1 = not there
  std::vector<RunsOfRank> runs_;                // by rank
  using RingKey = std::tuple<Collective, int32_t, int32_t, int32_t, int64_t, int64_t, int32_t>;
  std::map<RingKey, int> rings_;                                   // by group, units, elements and root
  std::map<std::tuple<size_t, size_t, int64_t>, int> hand_overs_;  // by ranks and samples
};

}  // namespace

std::unique_ptr<ProgramRates> RatesOfRanks(const Setting& setting, const PlanView& view, const std::vector<Program>& programs,
                                           const Ownership& ownership, const std::vector<ModelSlice>& slices,
                                           GraphWriter* writer) {
  return std::make_unique<RankRates>(setting, view, programs, ownership, slices, writer);
}

}  // namespace motley::planner
