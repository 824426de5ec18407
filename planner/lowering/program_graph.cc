#include "planner/lowering/program_graph.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/dtype.h"
#include "common/base/status_macros.h"
#include "common/program/program_index.h"
#include "planner/lowering/overlap_charge.h"
#include "planner/lowering/program_memory.h"
#include "planner/lowering/program_seconds.h"
#include "planner/lowering/program_walk.h"
#include "planner/lowering/step_lowering_graph.h"
#include "planner/lowering/step_lowering_seconds.h"
#include "planner/lowering/step_lowering_view.h"
#include "planner/plan/ownership.h"
#include "planner/plan/placement.h"

namespace motley::planner {
namespace {

class Graph : public WalkListener {
 public:
  Graph(const Setting& setting, const PlanView& view, const std::vector<Program>& programs, const Ownership& ownership)
      : setting_(setting),
        view_(view),
        programs_(programs),
        ownership_(ownership),
        owned_(ownership.NumOwnedByRank(programs.size())),
        writer_(setting.links),
        hidden_(setting.cluster.overlap_efficiency) {
    for (const RankView& rank : view.ranks) {
      const StageView& stage = view.stages[rank.stage];
      writer_.AddActor({rank.plan->device.value(), stage.pipeline, stage.index, 1, rank.device});
    }
    size_t instructions = 0;
    for (const Program& program : programs) {
      ends_.emplace_back(program.instructions.size());
      task_of_.emplace_back(program.instructions.size(), -1);
      instructions += program.instructions.size();
    }
    for (const std::vector<int32_t>& group : programs.front().groups) {
      std::vector<int32_t>& places = place_in_.emplace_back(programs.size(), -1);
      for (size_t i = 0; i < group.size(); ++i) places[static_cast<size_t>(group[i])] = static_cast<int32_t>(i);
    }
    last_compute_.assign(programs.size(), -1);
    writer_.Expect(instructions);
    for (size_t r = 0; r < programs.size() && hidden_ < 1; ++r) {
      charges_.push_back(OverlapCharges(programs[r], [this](const Operation& op) {
        return std::visit([this](const auto& o) { return SecondsBeside(o); }, op);
      }));
    }
  }

  ProgramGraph Finish() { return {writer_.Finish(), std::move(task_of_)}; }

  void Ran(size_t r, int32_t i) override {
    const Operation& op = At(r, i).op;
    std::visit([&](const auto& o) { Alone(r, i, o); }, op);
  }

  void Met(const std::vector<RankInstruction>& members) override {
    const Operation& op = At(members.front().rank, members.front().instruction).op;
    std::visit([&](const auto& o) { Together(members, o); }, op);
  }

  void HandedOver(RankInstruction send, RankInstruction receive) override {
    const Operation& op = At(send.rank, send.instruction).op;
    const auto* activation = std::get_if<SendActivation>(&op);
    const auto* gradient = std::get_if<SendGradient>(&op);
    const int32_t samples = activation != nullptr ? activation->samples : gradient->samples;
    const int32_t unit = activation != nullptr ? activation->unit : gradient->unit;
    const int32_t microbatch = activation != nullptr ? activation->microbatch : gradient->microbatch;
    IndexList after;
    AddWaits(send.rank, send.instruction, &after);
    AddWaits(receive.rank, receive.instruction, &after);
    IndexList lanes = {LaneIndex(static_cast<int>(send.rank), Lane::kSend),
                       LaneIndex(static_cast<int>(receive.rank), Lane::kReceive)};
    const int32_t task = writer_.AddTransfer(TaskKind::kSend, std::move(lanes), HandOverFlow(send.rank, receive.rank, samples), 1,
                                             std::move(after), {unit, microbatch});
    IsTask(send, task);
    IsTask(receive, task);
  }

 private:
  void IsTask(const RankInstruction& at, int32_t task) {
    ends_[at.rank][at.instruction] = {task};
    task_of_[at.rank][at.instruction] = task;
  }

  const Instruction& At(size_t rank, int32_t index) const { return programs_[rank].instructions[index]; }

  // ---- compute ----

  template <typename Op>
  void Alone(size_t r, int32_t i, const Op& op) {
    if constexpr (Op::kTraits.lane == Lane::kCompute) Compute(r, i, op);
    if constexpr (Op::kTraits.lane == Lane::kCopy) Copy(r, i, op);
  }

  // Of the device's seconds for the microbatches in the units.
  template <typename Op>
    requires requires(const Op& op) { PassOf(op); }
  void Compute(size_t r, int32_t i, const Op& op) {
    const TaskTag tag{op.unit, op.more_microbatches == 0 ? op.microbatch : -1};
    Add(r, i, PassOf(op), SecondsAt(r, op), tag);
  }
  void Compute(size_t r, int32_t i, const OptimizerStep& op) {
    const double owned = op.first_unit == -1 ? owned_[r] : static_cast<double>(Owned(r, op.first_unit, op.more_units));
    Add(r, i, TaskKind::kOptimizer, setting_.costs.OptimizerSeconds(view_.ranks[r].kind, owned), {op.first_unit, -1});
  }
  // What takes no time: over when what it waits for is.
  void Compute(size_t r, int32_t i, const Release&) { Nothing(r, i); }
  void Compute(size_t r, int32_t i, const ZeroGrad&) { Nothing(r, i); }

  template <typename Op>
  static ComputeWork WorkOf(const Op& op) {
    ComputeWork work{PassOf(op), op.segment, 0};
    if constexpr (requires { op.operators; }) work.operators = op.operators;
    return work;
  }
  double SamplesOf(size_t r, int32_t microbatch) const {
    return static_cast<double>(programs_[r].microbatches[microbatch].samples);
  }
  template <typename Op>
  double SecondsAt(size_t r, const Op& op) const {
    const RankView& rank = view_.ranks[r];
    double seconds = 0;
    for (int32_t unit = op.unit; unit <= op.unit + op.more_units; ++unit) {
      const UnitKind kind = UnitKindOf(programs_[r], unit);
      for (int32_t m = op.microbatch; m <= op.microbatch + op.more_microbatches; ++m) {
        seconds += ComputeSeconds(setting_.costs, rank.kind, rank.plan->tp_share, WorkOf(op), kind, SamplesOf(r, m));
      }
    }
    return seconds;
  }

  // A tensor-parallel group's: the slowest rank's time holds for all, then the sums, which nothing hides.
  template <typename Op>
    requires requires(const Op& op) { op.tp_group; }
  void Together(const std::vector<RankInstruction>& members, const Op& op) {
    double slowest = 0;
    IndexList after, tasks, lanes;
    for (const auto& [rank, instruction] : members) {
      const auto& own = std::get<Op>(At(rank, instruction).op);
      slowest = std::max(slowest, SecondsAt(rank, own));
      AddWaits(rank, instruction, &after);
      after.push_back(last_compute_[rank]);
      lanes.push_back(LaneIndex(static_cast<int>(rank), Lane::kCompute));
    }
    for (const RankInstruction& member : members) {
      Pay(member.rank, member.instruction);
      tasks.push_back(writer_.AddCompute(PassOf(op), static_cast<int>(member.rank), slowest, after, {op.unit, -1}));
      last_compute_[member.rank] = tasks.back();
      IsTask(member, tasks.back());
    }
    const size_t first = members.front().rank;
    int sums = 0;
    for (int32_t unit = op.unit; unit <= op.unit + op.more_units; ++unit) {
      sums += SumsInside(WorkOf(op), UnitKindOf(programs_[first], unit));
    }
    for (int32_t m = op.microbatch; sums > 0 && m <= op.microbatch + op.more_microbatches; ++m) {
      const int flow = writer_.AddFlow(ActivationSum(members, setting_.costs.BoundaryBytes(SamplesOf(first, m))));
      tasks = {writer_.AddTransfer(TaskKind::kAllReduce, lanes, flow, sums, tasks, {op.unit, m})};
      for (const RankInstruction& member : members) {
        last_compute_[member.rank] = tasks.back();
        IsTask(member, tasks.back());
      }
    }
  }
  Flow ActivationSum(const std::vector<RankInstruction>& members, int64_t bytes) const {
    return setting_.links.Ring(Collective::kAllReduce, DevicesOf(members), static_cast<double>(bytes));
  }

  // ---- collectives ----

  std::vector<int> DevicesOf(const std::vector<RankInstruction>& members) const {
    std::vector<int> devices;
    for (const RankInstruction& member : members) devices.push_back(view_.ranks[member.rank].device);
    return devices;
  }
  std::vector<int> DevicesOf(int32_t group) const {
    std::vector<int> devices;
    for (const int32_t rank : programs_[0].groups[group]) devices.push_back(view_.ranks[rank].device);
    return devices;
  }
  void AddCollective(const std::vector<RankInstruction>& members, TaskKind kind, int flow, TaskTag tag) {
    IndexList after, lanes;
    for (const auto& [rank, instruction] : members) {
      AddWaits(rank, instruction, &after);
      lanes.push_back(LaneIndex(static_cast<int>(rank), Lane::kCollective));
    }
    const int32_t task = writer_.AddTransfer(kind, std::move(lanes), flow, 1, std::move(after), tag);
    for (const RankInstruction& member : members) IsTask(member, task);
  }
  // Collectives of parameters and gradients run beside compute.
  static TaskKind BesideCompute(const Gather&) { return TaskKind::kGather; }
  static TaskKind BesideCompute(const Broadcast&) { return TaskKind::kGather; }
  static TaskKind BesideCompute(const ReduceScatter&) { return TaskKind::kReduceScatter; }
  static TaskKind BesideCompute(const AllReduce&) { return TaskKind::kAllReduce; }
  template <typename Op>
    requires requires(const Op& op) { BesideCompute(op); }
  void Together(const std::vector<RankInstruction>& members, const Op& op) {
    AddCollective(members, BesideCompute(op), FlowOf(op), {op.unit, -1});
  }
  int FlowOf(const Gather& op) { return RingFlow(Collective::kAllGather, op, op.elements, -1); }
  int FlowOf(const ReduceScatter& op) { return RingFlow(Collective::kReduceScatter, op, op.elements, -1); }
  int FlowOf(const AllReduce& op) { return RingFlow(Collective::kAllReduce, op, op.elements, -1); }
  // As a gather to which the root gives everything.
  int FlowOf(const Broadcast& op) { return RingFlow(Collective::kAllGather, op, {}, op.root); }
  // What of a collective some compute pays.
  template <typename Op>
  double SecondsBeside(const Op& op) {
    if constexpr (requires { BesideCompute(op); }) return (1 - hidden_) * writer_.SecondsAlone(FlowOf(op));
    return 0;
  }

  void Together(const std::vector<RankInstruction>& members, const BroadcastActivation& op) {
    const int64_t bytes = setting_.costs.BoundaryBytes(SamplesOf(members.front().rank, op.microbatch));
    std::vector<double> shares;
    for (const RankInstruction& member : members) shares.push_back(member.rank == static_cast<size_t>(op.root) ? 1 : 0);
    const int flow =
        writer_.AddFlow(setting_.links.Ring(Collective::kAllGather, DevicesOf(members), static_cast<double>(bytes), shares));
    AddCollective(members, TaskKind::kGather, flow, {op.unit, op.microbatch});
  }
  void Together(const std::vector<RankInstruction>& members, const AllReduceActivation& op) {
    const double samples = SamplesOf(members.front().rank, op.microbatch);
    // Three numbers of float32 for each row of logits.
    const double rows = samples * static_cast<double>(setting_.costs.workload().seq_len) * 3 * SizeOfBytes(DType::kFloat32);
    const int64_t bytes = op.of == Exchanged::kRows ? static_cast<int64_t>(rows) : setting_.costs.BoundaryBytes(samples);
    AddCollective(members, TaskKind::kAllReduce, writer_.AddFlow(ActivationSum(members, bytes)), {op.unit, op.microbatch});
  }
  void Together(const std::vector<RankInstruction>& members, const ReduceScalars&) {
    const int flow = writer_.AddFlow({setting_.links.TreeSeconds(DevicesOf(members)), {}});
    AddCollective(members, TaskKind::kScalars, flow, {});
  }
  template <typename Op>
    requires(Op::kTraits.lane != Lane::kCollective && !requires(const Op& op) { op.tp_group; })
  void Together(const std::vector<RankInstruction>&, const Op&) {}  // no walk meets in it

  // ---- copies ----

  void AddCopy(size_t r, int32_t i, TaskKind kind, double bytes, TaskTag tag) {
    const int device = view_.ranks[r].device;
    const bool out = kind == TaskKind::kOffload;
    const int flow = writer_.AddFlow(out ? setting_.links.ToHost(device, bytes) : setting_.links.FromHost(device, bytes));
    IndexList after;
    AddWaits(r, i, &after);
    IsTask({r, i}, writer_.AddTransfer(kind, {LaneIndex(static_cast<int>(r), Lane::kCopy)}, flow, 1, std::move(after), tag));
  }
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
  void Copy(size_t r, int32_t i, const OffloadActivation& op) {
    AddCopy(r, i, TaskKind::kOffload, InputBytes(r, op), {op.unit, op.microbatch});
  }
  void Copy(size_t r, int32_t i, const PrefetchActivation& op) {
    AddCopy(r, i, TaskKind::kPrefetch, InputBytes(r, op), {op.unit, op.microbatch});
  }
  void Copy(size_t r, int32_t i, const OffloadState& op) {
    AddCopy(r, i, TaskKind::kOffload, StateBytes(r, op.unit, op.more_units, op.of), {op.unit, -1});
  }
  void Copy(size_t r, int32_t i, const PrefetchState& op) {
    AddCopy(r, i, TaskKind::kPrefetch, StateBytes(r, op.unit, op.more_units, op.of), {op.unit, -1});
  }

  // ---- what all share ----

  // Elements of the units that the rank owns.
  int64_t Owned(size_t r, int32_t unit, int32_t more) const {
    int64_t owned = 0;
    for (int32_t u = unit; u <= unit + more; ++u) owned += ownership_.NumOwned(u, static_cast<int32_t>(r));
    return owned;
  }
  void Add(size_t r, int32_t i, TaskKind kind, double seconds, TaskTag tag) {
    IndexList after;
    AddWaits(r, i, &after);
    Pay(r, i);
    last_compute_[r] = writer_.AddCompute(kind, static_cast<int>(r), seconds, std::move(after), tag);
    IsTask({r, i}, last_compute_[r]);
  }
  // What collectives cost the lane's compute before the instruction. Where it idles anyway, as under one that nothing hides, this
  // adds nothing: it waits for no task.
  void Pay(size_t r, int32_t i) {
    if (charges_.empty() || charges_[r][i] <= 0) return;
    writer_.AddCompute(TaskKind::kWait, static_cast<int>(r), charges_[r][i], {});
  }
  void Nothing(size_t r, int32_t i) {
    AddWaits(r, i, &ends_[r][i]);
    ends_[r][i].push_back(last_compute_[r]);
  }

  void AddWaits(size_t rank, int32_t instruction, IndexList* after) const {
    for (const int32_t a : At(rank, instruction).after) {
      after->insert(after->end(), ends_[rank][a].begin(), ends_[rank][a].end());
    }
  }

  // Of the ranges that the group's ranks own, or of what `root` has, all units at once.
  template <typename Op>
  int RingFlow(Collective collective, const Op& op, const ArrayRange& elements, int32_t root) {
    const RingKey key = {collective, op.group, op.unit, op.more_units, elements.first, elements.count, root};
    const auto [at, added] = rings_.try_emplace(key, -1);
    if (!added) return at->second;
    const std::vector<int32_t>& members = programs_[0].groups[op.group];
    std::vector<double> shares(members.size(), 0);
    double whole = 0, owned = 0;
    for (int32_t unit = op.unit; unit <= op.unit + op.more_units; ++unit) {
      const int64_t begin = elements.first, end = elements.whole() ? ownership_.NumElements(unit) : elements.end();
      whole += static_cast<double>(end - begin);
      if (root != -1) {
        shares[static_cast<size_t>(place_in_[op.group][root])] += static_cast<double>(end - begin);
        continue;
      }
      for (const OwnedRange& range : ownership_.Of(unit)) {
        const int64_t part = std::min(end, range.end) - std::max(begin, range.begin);
        const int32_t place = place_in_[op.group][range.rank];
        if (part > 0 && place >= 0) shares[static_cast<size_t>(place)] += static_cast<double>(part);
      }
    }
    for (const double share : shares) owned += share;
    for (double& share : shares) share /= owned;
    if (collective == Collective::kAllReduce || owned == 0) shares.clear();  // each owns all
    const double bytes = whole * PartHeld(members) * setting_.costs.RingBytes(collective);
    return at->second = writer_.AddFlow(setting_.links.Ring(collective, DevicesOf(op.group), bytes, shares));
  }
  // Of the units' arrays: ranks of tensor-parallel units meet with those that hold the same slice, or all of a unit do.
  double PartHeld(const std::vector<int32_t>& ranks) const {
    const RankView& first = view_.ranks[ranks.front()];
    double part = 0;
    for (const int32_t r : ranks) {
      const RankView& rank = view_.ranks[r];
      if (rank.stage == first.stage && rank.unit == first.unit) part += rank.plan->tp_share;
    }
    return part;
  }
  int HandOverFlow(size_t from, size_t to, int32_t samples) {
    const auto [at, added] = hand_overs_.try_emplace({from, to, samples}, -1);
    if (!added) return at->second;
    const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(samples)));
    return at->second = writer_.AddFlow(setting_.links.PointToPoint(view_.ranks[from].device, view_.ranks[to].device, bytes));
  }

  const Setting& setting_;
  const PlanView& view_;
  const std::vector<Program>& programs_;
  const Ownership& ownership_;
  const std::vector<double> owned_;  // by rank
  GraphWriter writer_;
  std::vector<std::vector<IndexList>> ends_;  // by rank and instruction: the tasks after which it is over
  std::vector<std::vector<int32_t>> task_of_;
  std::vector<std::vector<int32_t>> place_in_;  // by group and rank: its place in the ring; -1 = not there
  std::vector<int32_t> last_compute_;           // by rank
  const double hidden_;                         // part of a collective beside compute that costs it nothing
  std::vector<std::vector<double>> charges_;    // by rank and instruction; empty = nothing costs anything
  using RingKey = std::tuple<Collective, int32_t, int32_t, int32_t, int64_t, int64_t, int32_t>;
  std::map<RingKey, int> rings_;                                   // by group, units, elements and root
  std::map<std::tuple<size_t, size_t, int32_t>, int> hand_overs_;  // by ranks and samples
};

// That ranges of elements are those of the model's units: each program is held to itself alone (Validate).
absl::Status CheckElements(const std::vector<Program>& programs, const Ownership& ownership) {
  for (const Program& program : programs) {
    const ProgramIndex index(program);
    for (size_t unit = 0; unit < index.elements.size(); ++unit) {
      const int64_t end = index.elements[unit], elements = ownership.NumElements(static_cast<int32_t>(unit));
      if (end == 0 || end == elements) continue;
      return absl::FailedPreconditionError(absl::StrCat("program of rank ", program.rank, ": its ranges of unit ", unit,
                                                        " end at element ", end, ", the unit has ", elements));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProgramGraph> GraphOfPrograms(const Setting& setting, const Plan& plan, const std::vector<Program>& programs) {
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, plan, {.merge = false, .assign_samples = false}));
  const Ownership ownership = OwnershipOf(plan, UnitElements(setting.costs.layout()));
  MOTLEY_RETURN_IF_ERROR(CheckElements(programs, ownership));
  Graph graph(setting, view, programs, ownership);
  MOTLEY_RETURN_IF_ERROR(WalkPrograms(programs, &graph));
  return graph.Finish();
}

}  // namespace motley::planner
