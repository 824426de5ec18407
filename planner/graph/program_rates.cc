#include "planner/graph/program_rates.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley::planner {

ProgramRates::ProgramRates(const Setting& setting, const PlanView& view, const std::vector<Program>& programs,
                           std::vector<ActorView> members, std::vector<Part> blocks, GraphWriter* writer)
    : setting_(setting),
      view_(view),
      programs_(programs),
      members_(std::move(members)),
      blocks_(std::move(blocks)),
      writer_(*writer),
      seconds_(setting.costs, view.ranks, members_) {}

Actor ProgramRates::ActorOf(size_t program) const {
  const ActorView& member = members_[program];
  const StageView& stage = view_.stages[member.stage];
  const RankView& first = view_.ranks[member.first_rank];
  const int ranks = static_cast<int>(member.units()) * member.ranks_per_unit;
  std::string name = first.plan->device.value();
  if (ranks > 1) absl::StrAppend(&name, " and ", ranks - 1, " like it");
  return {std::move(name), stage.pipeline, stage.index, ranks, first.device, UnitText(view_, first)};
}

int64_t ProgramRates::SizeOf(size_t program, int32_t microbatch) const {
  return programs_[program].microbatches[microbatch].samples / members_[program].units();
}

ProgramRates::Place ProgramRates::PlaceOf(size_t program, int32_t microbatch, int64_t first, int64_t samples) const {
  if (members_[program].units() == 1) return {samples, 0};
  return {SizeOf(program, microbatch), first - programs_[program].microbatches[microbatch].first};
}

template <typename Of>
double ProgramRates::MostOf(size_t program, Of of) const {
  const ActorView& member = members_[program];
  double most = 0;
  for (int r = 0; r < member.ranks_per_unit; ++r) most = std::max(most, of(view_.ranks[member.first_rank + r]));
  return most;
}

// ---- compute ----

double ProgramRates::Seconds(size_t program, const ComputeSpan& what) {
  double seconds = 0;
  for (int32_t m = what.microbatch; m <= what.microbatch + what.more_microbatches; ++m) {
    const PassSeconds& pass = seconds_.Of(program, SizeOf(program, m), Again(what));
    for (int32_t u = what.unit; u <= what.unit + what.more_units; ++u) seconds += pass.Of(what.pass, blocks_[u]);
  }
  return SegmentPart(setting_.costs, view_.ranks[members_[program].first_rank].kind, what.segment) * seconds;
}

InnerSums ProgramRates::SumsInside(std::span<const RankInstruction> members, const ComputeSpan& what) {
  const size_t program = members.front().rank;
  InnerSums result;
  if (members.size() == 1 && members_[program].ranks_per_unit == 1) return result;
  double times = 0;
  for (int32_t u = what.unit; u <= what.unit + what.more_units; ++u) times += planner::SumsInside(what.pass, blocks_[u]);
  const int32_t end = what.microbatch + what.more_microbatches + 1;
  for (int32_t m = what.microbatch, next = m; m < end && times > 0; m = next) {
    const int64_t size = SizeOf(program, m);
    while (next < end && SizeOf(program, next) == size) ++next;
    const int flow = Inside(members, setting_.costs.BoundaryBytes(static_cast<double>(size)));
    result.push_back({flow, times * (next - m), end - what.microbatch == 1 ? m : -1});
  }
  return result;
}

double ProgramRates::OptimizerSeconds(size_t program, const OptimizerStep& op) const {
  return MostOf(program, [&](const RankView& rank) {
    return setting_.costs.OptimizerSeconds(rank.kind, Owned(program, rank, true, op.first_unit, op.more_units));
  });
}

// ---- collectives ----

int ProgramRates::Scalars() {
  std::vector<int> devices;
  for (const RankView& rank : view_.ranks) devices.push_back(rank.device);
  return writer_.AddFlow({setting_.links.TreeSeconds(devices), {}});
}

int ProgramRates::Exchange(std::span<const RankInstruction> members, const AllReduceActivation& op) {
  const auto samples = static_cast<double>(SizeOf(members.front().rank, op.microbatch));
  const Costs& costs = setting_.costs;
  return Inside(members, op.of == Exchanged::kRows ? costs.RowBytes(samples) : costs.BoundaryBytes(samples));
}

int ProgramRates::Exchange(std::span<const RankInstruction> members, const BroadcastActivation& op) {
  const auto samples = static_cast<double>(SizeOf(members.front().rank, op.microbatch));
  return Inside(members, setting_.costs.BoundaryBytes(samples), op.root);
}

int ProgramRates::Inside(std::span<const RankInstruction> members, int64_t bytes, int32_t root) {
  const auto [at, added] = inside_.try_emplace({members.front().rank, members.size(), bytes, root}, -1);
  if (!added) return at->second;
  std::vector<Flow> flows;
  for (size_t u = 0; u < members_[members.front().rank].unit_ranks.size(); ++u) {
    std::vector<int> devices;
    std::vector<double> shares;
    for (const RankInstruction& of : members) {
      const ActorView& member = members_[of.rank];
      for (int r = 0; r < member.ranks_per_unit; ++r) devices.push_back(view_.ranks[member.unit_ranks[u] + r].device);
      if (root >= 0) shares.push_back(of.rank == static_cast<size_t>(root) ? 1 : 0);
    }
    const Collective collective = root >= 0 ? Collective::kAllGather : Collective::kAllReduce;
    flows.push_back(setting_.links.Ring(collective, devices, static_cast<double>(bytes), shares));
  }
  return at->second = writer_.AddFlow(Links::Together(flows));
}

// ---- hand-overs ----

int ProgramRates::HandOver(const HandOverPiece& piece) {
  const Place out = PlaceOf(piece.from, piece.from_microbatch, piece.first, piece.samples);
  const Place in = PlaceOf(piece.to, piece.to_microbatch, piece.first, piece.samples);
  const auto [at, added] = hand_overs_.try_emplace(
      {static_cast<int64_t>(piece.from), static_cast<int64_t>(piece.to), out.size, in.size, out.begin, in.begin, piece.samples},
      -1);
  if (!added) return at->second;
  std::vector<Flow> flows;
  for (int64_t done = 0, next = 0; done < piece.samples; done = next) {
    const int64_t i = (out.begin + done) / out.size, j = (in.begin + done) / in.size;
    next = std::min({piece.samples, (i + 1) * out.size - out.begin, (j + 1) * in.size - in.begin});
    const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(next - done)));
    const int from = members_[piece.from].unit_ranks[i], to = members_[piece.to].unit_ranks[j];
    flows.push_back(setting_.links.PointToPoint(view_.ranks[from].device, view_.ranks[to].device, bytes));
  }
  return at->second = writer_.AddFlow(Links::Together(flows));
}

UnitRange ProgramRates::UnitsWith(size_t program, int32_t microbatch, int64_t first, int64_t samples) const {
  const auto [size, begin] = PlaceOf(program, microbatch, first, samples);
  return {begin / size, (begin + samples - 1) / size + 1, members_[program].units()};
}

// ---- copies ----

// Inputs of layers. A head's is handed over, or stays.
template <typename Op>
double ProgramRates::InputBytes(size_t program, const Op& op) const {
  int64_t layers = 0, samples = 0;
  for (int32_t u = op.unit; u <= op.unit + op.more_units; ++u) layers += blocks_[u].layers;
  for (int32_t m = op.microbatch; m <= op.microbatch + op.more_microbatches; ++m) samples += SizeOf(program, m);
  return static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(samples * layers)));
}

template <typename Op>
double ProgramRates::StateBytes(size_t program, const Op& op, int64_t (HostState::*part)() const) const {
  return MostOf(program, [&](const RankView& rank) {
    const double owned = Owned(program, rank, true, op.unit, op.more_units);
    return static_cast<double>((setting_.costs.InHost(programs_[program].offloads, owned).*part)());
  });
}

int ProgramRates::Copy(size_t program, const OffloadActivation& op) { return Host(program, InputBytes(program, op), true); }
int ProgramRates::Copy(size_t program, const PrefetchActivation& op) { return Host(program, InputBytes(program, op), false); }
// Where pipelines share what they step, a stage still needs all of its parameters.
int ProgramRates::Copy(size_t program, const PrefetchParameters& op) {
  const double owned = MostOf(program, [&](const RankView& rank) { return Owned(program, rank, false, op.unit, op.more_units); });
  const double parts = view_.pipelines_zero_stage > 0 ? static_cast<double>(view_.pipelines.size()) : 1;
  return Host(program, parts * owned * static_cast<double>(setting_.costs.element_bytes()), false);
}
int ProgramRates::Copy(size_t program, const OffloadGradients& op) {
  const double owned = MostOf(program, [&](const RankView& rank) { return Owned(program, rank, true, op.unit, op.more_units); });
  return Host(program, owned * static_cast<double>(setting_.costs.gradient_bytes()), true);
}
int ProgramRates::Copy(size_t program, const PrefetchOptimizer& op) {
  return Host(program, StateBytes(program, op, &HostState::StepNeeds), false);
}
int ProgramRates::Copy(size_t program, const OffloadOptimizer& op) {
  return Host(program, StateBytes(program, op, &HostState::StepMakes), true);
}

int ProgramRates::Host(size_t program, double bytes, bool to_host) {
  const auto [at, added] = host_.try_emplace({program, bytes, to_host}, -1);
  if (!added) return at->second;
  std::vector<Flow> flows;
  for (const int first : members_[program].unit_ranks) {
    for (int r = first; r < first + members_[program].ranks_per_unit; ++r) {
      const int device = view_.ranks[r].device;
      flows.push_back(to_host ? setting_.links.ToHost(device, bytes) : setting_.links.FromHost(device, bytes));
    }
  }
  return at->second = writer_.AddFlow(Links::Together(flows));
}

}  // namespace motley::planner
