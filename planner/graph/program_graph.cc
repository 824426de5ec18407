#include "planner/graph/program_graph.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/program/program_index.h"
#include "planner/graph/graph_writer.h"
#include "planner/graph/overlap_charge.h"
#include "planner/graph/pass_seconds.h"
#include "planner/graph/program_rates.h"
#include "planner/graph/program_walk.h"
#include "planner/plan/ownership.h"
#include "planner/plan/unit_slices.h"

namespace motley::planner {
namespace {

class Graph : public WalkListener {
 public:
  // `all_hides`: no collective costs the compute beside it anything.
  Graph(const std::vector<Program>& programs, bool all_hides, ProgramRates* rates, GraphWriter* writer)
      : programs_(programs), rates_(*rates), writer_(*writer), last_compute_(programs.size(), -1), send_waits_(programs.size()) {
    for (std::vector<std::vector<int32_t>>& last : last_hand_over_) last.resize(programs.size());
    size_t instructions = 0;
    for (size_t r = 0; r < programs.size(); ++r) {
      writer_.AddActor(rates_.ActorOf(r));
      ends_.emplace_back(programs[r].instructions.size());
      task_of_.emplace_back(programs[r].instructions.size(), -1);
      instructions += programs[r].instructions.size();
    }
    writer_.Expect(instructions);
    for (size_t r = 0; r < programs.size() && !all_hides; ++r) {
      charges_.push_back(OverlapCharges(programs[r], [this, r](const Operation& op) {
        return std::visit([this, r](const auto& o) { return SecondsBeside(r, o); }, op);
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
    const Piece from = PieceAt(send), to = PieceAt(receive);
    const HandOverPiece piece = {send.rank, receive.rank, from.microbatch, to.microbatch, from.first, from.samples};
    IndexList after, lanes;
    AddWaits(send.rank, send.instruction, &after);
    if (!after.empty()) send_waits_[send.rank] = after;
    AddWaits(receive.rank, receive.instruction, &after);
    const UnitRange senders = TakeLane(send.rank, Lane::kSend, from, &lanes, &after);
    // A send names what its lane has not waited for. Beside the lane it waits for the same.
    const IndexList& waits = send_waits_[send.rank];
    if (!senders.all()) after.insert(after.end(), waits.begin(), waits.end());
    const UnitRange receivers = TakeLane(receive.rank, Lane::kReceive, to, &lanes, &after);
    const int32_t task = writer_.AddTransfer(TaskKind::kSend, std::move(lanes), rates_.HandOver(piece), 1, std::move(after),
                                             {from.unit, from.microbatch});
    IsTask(send, task);
    IsTask(receive, task);
    LeaveLane(send.rank, Lane::kSend, senders, task);
    LeaveLane(receive.rank, Lane::kReceive, receivers, task);
    if (receivers.all()) return;
    // Who needs the microbatch names its newest piece alone: the units' others are over with it.
    const std::vector<int32_t>& newest = LastHandOvers(receive.rank, Lane::kReceive);
    IndexList& ends = ends_[receive.rank][receive.instruction];
    ends.assign(newest.begin(), newest.end());
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  }

 private:
  void IsTask(const RankInstruction& at, int32_t task) {
    ends_[at.rank][at.instruction] = {task};
    task_of_[at.rank][at.instruction] = task;
  }

  const Instruction& At(size_t rank, int32_t index) const { return programs_[rank].instructions[index]; }

  // ---- hand-overs ----

  // What all four of their operations say.
  struct Piece {
    int32_t unit = 0, microbatch = 0, first = 0, samples = 0;
  };
  Piece PieceAt(const RankInstruction& at) const {
    return std::visit(
        [](const auto& op) -> Piece {
          if constexpr (requires { op.peer; }) return {op.unit, op.microbatch, op.first, op.samples};
          return {};
        },
        At(at.rank, at.instruction).op);
  }
  std::vector<int32_t>& LastHandOvers(size_t r, Lane lane) { return last_hand_over_[lane == Lane::kSend ? 0 : 1][r]; }
  // Who hands over one after another. The units of a class each do so for themselves: a piece of some of them waits for these
  // units' last ones and takes no lane, as others may send or receive beside it.
  UnitRange TakeLane(size_t r, Lane lane, const Piece& piece, IndexList* lanes, IndexList* after) {
    const UnitRange units = rates_.UnitsWith(r, piece.microbatch, piece.first, piece.samples);
    if (units.all()) lanes->push_back(LaneIndex(static_cast<int>(r), lane));
    if (units.units == 1) return units;
    std::vector<int32_t>& last = LastHandOvers(r, lane);
    last.resize(static_cast<size_t>(units.units), -1);
    for (int64_t u = units.first; u < units.last; ++u) {
      if (after->empty() || after->back() != last[u]) after->push_back(last[u]);
    }
    return units;
  }
  void LeaveLane(size_t r, Lane lane, const UnitRange& units, int32_t task) {
    if (units.units == 1) return;
    std::vector<int32_t>& last = LastHandOvers(r, lane);
    std::fill(last.begin() + units.first, last.begin() + units.last, task);
  }

  // ---- compute ----

  template <typename Op>
  void Alone(size_t r, int32_t i, const Op& op) {
    if constexpr (Op::kTraits.lane == Lane::kCompute) Compute({r, i}, op);
    if constexpr (Op::kTraits.lane == Lane::kCopy) Copy(r, i, op);
  }

  template <typename Op>
    requires requires(const Op& op) { PassOf(op); }
  void Compute(const RankInstruction& at, const Op& op) {
    const ComputeSpan what = WhatOf(op);
    const double seconds = rates_.Seconds(at.rank, what);
    // A class that recomputes some operators runs nothing again of an embedding or head.
    if (what.pass == TaskKind::kRecompute && seconds <= 0) return Nothing(at.rank, at.instruction);
    Add(at, what.pass, seconds, {op.unit, op.more_microbatches == 0 ? op.microbatch : -1});
    AddSums({&at, 1}, what);
  }
  void Compute(const RankInstruction& at, const OptimizerStep& op) {
    Add(at, TaskKind::kOptimizer, rates_.OptimizerSeconds(at.rank, op), {op.first_unit, -1});
  }
  // What takes no time: over when what it waits for is.
  void Compute(const RankInstruction& at, const Release&) { Nothing(at.rank, at.instruction); }
  void Compute(const RankInstruction& at, const ZeroGrad&) { Nothing(at.rank, at.instruction); }

  template <typename Op>
  static ComputeSpan WhatOf(const Op& op) {
    ComputeSpan what{PassOf(op), op.segment, 0, op.unit, op.more_units, op.microbatch, op.more_microbatches};
    if constexpr (requires { op.operators; }) what.operators = op.operators;
    return what;
  }

  // A tensor-parallel group's: the slowest rank's time holds for all.
  template <typename Op>
    requires requires(const Op& op) { op.tp_group; }
  void Together(const std::vector<RankInstruction>& members, const Op& op) {
    double slowest = 0;
    IndexList after;
    for (const auto& [rank, instruction] : members) {
      slowest = std::max(slowest, rates_.Seconds(rank, WhatOf(std::get<Op>(At(rank, instruction).op))));
      AddWaits(rank, instruction, &after);
      after.push_back(last_compute_[rank]);
    }
    for (const RankInstruction& member : members) {
      Pay(member.rank, member.instruction);
      Computes(member, writer_.AddCompute(PassOf(op), static_cast<int>(member.rank), slowest, after, {op.unit, -1}));
    }
    AddSums(members, WhatOf(op));
  }
  // The sums inside what the members have computed, which nothing hides.
  void AddSums(std::span<const RankInstruction> members, const ComputeSpan& what) {
    const InnerSums sums = rates_.SumsInside(members, what);
    if (sums.empty()) return;
    IndexList lanes, after;
    for (const RankInstruction& member : members) {
      lanes.push_back(LaneIndex(static_cast<int>(member.rank), Lane::kCompute));
      after.push_back(last_compute_[member.rank]);
    }
    for (const InnerSum& sum : sums) {
      after = {writer_.AddTransfer(TaskKind::kAllReduce, lanes, sum.flow, sum.times, after, {what.unit, sum.microbatch})};
      for (const RankInstruction& member : members) Computes(member, after.front());
    }
  }
  void Computes(const RankInstruction& at, int32_t task) {
    last_compute_[at.rank] = task;
    IsTask(at, task);
  }

  // ---- collectives ----

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
    AddCollective(members, BesideCompute(op), FlowOf(members.front().rank, op), {op.unit, -1});
  }
  int FlowOf(size_t r, const Gather& op) { return RingFlow(r, Collective::kAllGather, op, op.elements); }
  int FlowOf(size_t r, const ReduceScatter& op) { return RingFlow(r, Collective::kReduceScatter, op, op.elements); }
  int FlowOf(size_t r, const AllReduce& op) { return RingFlow(r, Collective::kAllReduce, op, op.elements); }
  // As a gather to which the root gives everything.
  int FlowOf(size_t r, const Broadcast& op) { return RingFlow(r, Collective::kAllGather, op, {}, op.root); }
  template <typename Op>
  int RingFlow(size_t r, Collective collective, const Op& op, const ArrayRange& elements, int32_t root = -1) {
    return rates_.Ring({collective, op.group, op.unit, op.more_units, BufferOf(op), elements, root, r});
  }
  template <typename Op>
  static int32_t BufferOf(const Op& op) {
    if constexpr (requires { op.grad; }) return op.grad;
    if constexpr (requires { op.buffer; }) return op.buffer;
  }
  // What of a collective some compute pays.
  template <typename Op>
  double SecondsBeside(size_t r, const Op& op) {
    if constexpr (requires { BesideCompute(op); }) return writer_.SecondsBesideCompute(FlowOf(r, op));
    return 0;
  }

  void Together(const std::vector<RankInstruction>& members, const BroadcastActivation& op) {
    AddCollective(members, TaskKind::kGather, rates_.Exchange(members, op), {op.unit, op.microbatch});
  }
  void Together(const std::vector<RankInstruction>& members, const AllReduceActivation& op) {
    AddCollective(members, TaskKind::kAllReduce, rates_.Exchange(members, op), {op.unit, op.microbatch});
  }
  void Together(const std::vector<RankInstruction>& members, const ReduceScalars&) {
    AddCollective(members, TaskKind::kScalars, rates_.Scalars(), {});
  }
  template <typename Op>
    requires(Op::kTraits.lane != Lane::kCollective && !requires(const Op& op) { op.tp_group; })
  void Together(const std::vector<RankInstruction>&, const Op&) {}  // no walk meets in it

  // ---- copies ----

  static TaskKind CopyOf(const OffloadActivation&) { return TaskKind::kOffload; }
  static TaskKind CopyOf(const PrefetchActivation&) { return TaskKind::kPrefetch; }
  static TaskKind CopyOf(const PrefetchParameters&) { return TaskKind::kPrefetch; }
  static TaskKind CopyOf(const OffloadGradients&) { return TaskKind::kOffload; }
  static TaskKind CopyOf(const PrefetchOptimizer&) { return TaskKind::kPrefetch; }
  static TaskKind CopyOf(const OffloadOptimizer&) { return TaskKind::kOffload; }
  template <typename Op>
  void Copy(size_t r, int32_t i, const Op& op) {
    TaskTag tag{op.unit, -1};
    if constexpr (requires { op.microbatch; }) tag.microbatch = op.microbatch;
    IndexList after;
    AddWaits(r, i, &after);
    IsTask({r, i}, writer_.AddTransfer(CopyOf(op), {LaneIndex(static_cast<int>(r), Lane::kCopy)}, rates_.Copy(r, op), 1,
                                       std::move(after), tag));
  }

  // ---- what all share ----

  void Add(const RankInstruction& at, TaskKind kind, double seconds, TaskTag tag) {
    IndexList after;
    AddWaits(at.rank, at.instruction, &after);
    Pay(at.rank, at.instruction);
    Computes(at, writer_.AddCompute(kind, static_cast<int>(at.rank), seconds, std::move(after), tag));
  }
  // What collectives cost the lane's compute before the instruction. Where it idles anyway, as under one that nothing hides, this
  // adds nothing: it waits for no task.
  void Pay(size_t r, int32_t i) {
    if (charges_.empty() || charges_[r][i] <= 0) return;
    writer_.AddCompute(TaskKind::kWait, static_cast<int>(r), charges_[r][i], {});
  }
  void Nothing(size_t r, int32_t i) {
    Pay(r, i);
    AddWaits(r, i, &ends_[r][i]);
    ends_[r][i].push_back(last_compute_[r]);
  }

  void AddWaits(size_t rank, int32_t instruction, IndexList* after) const {
    for (const int32_t a : At(rank, instruction).after) {
      after->insert(after->end(), ends_[rank][a].begin(), ends_[rank][a].end());
    }
  }

  const std::vector<Program>& programs_;
  ProgramRates& rates_;
  GraphWriter& writer_;
  std::vector<std::vector<IndexList>> ends_;  // by program and instruction: the tasks after which it is over
  std::vector<std::vector<int32_t>> task_of_;
  std::vector<int32_t> last_compute_;                                // by program
  std::vector<IndexList> send_waits_;                                // by program: what the last send that names any names
  std::array<std::vector<std::vector<int32_t>>, 2> last_hand_over_;  // sends, receives: by program and unit, where it has several
  std::vector<std::vector<double>> charges_;                         // by program and instruction; empty = nothing costs anything
};

// That ranges of elements are those of the ranks' slices of the model: each program is held to itself alone (Validate).
absl::Status CheckElements(const ModelShape& model, const std::vector<Program>& programs, const std::vector<ModelSlice>& slices) {
  for (size_t r = 0; r < programs.size(); ++r) {
    const Program& program = programs[r];
    const ProgramIndex index(program);
    if (std::all_of(index.elements.begin(), index.elements.end(), [](int64_t end) { return end == 0; })) continue;
    const SliceElements slice = ElementsOf(model, slices[r]);
    for (size_t unit = 0; unit < index.elements.size(); ++unit) {
      const int64_t end = index.elements[unit], elements = slice.all[unit];
      if (end == 0 || end == elements) continue;
      return absl::FailedPreconditionError(absl::StrCat("program of rank ", program.rank, ": its ranges of unit ", unit,
                                                        " end at element ", end, ", the unit has ", elements));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ProgramGraph> GraphAt(const Setting& setting, const std::vector<Program>& programs, ProgramRates* rates,
                                     GraphWriter* writer) {
  Graph graph(programs, setting.links.everything_hides(), rates, writer);
  MOTLEY_RETURN_IF_ERROR(WalkPrograms(programs, &graph));
  return graph.Finish();
}

}  // namespace

absl::StatusOr<ProgramGraph> GraphOfPrograms(const Setting& setting, const ResolvedPlan& resolved,
                                             const std::vector<Program>& programs) {
  const auto& [plan, view, slices] = resolved;
  MOTLEY_RETURN_IF_ERROR(CheckElements(setting.workload.model, programs, slices));
  const Ownership ownership = OwnershipOf(*plan, setting.workload.model);
  GraphWriter writer(setting.links);
  return GraphAt(setting, programs, RatesOfRanks(setting, view, programs, ownership, slices, &writer).get(), &writer);
}

absl::StatusOr<StepGraph> GraphOfClasses(const Setting& setting, const PlanView& view, const ClassPrograms& classes) {
  GraphWriter writer(setting.links);
  MOTLEY_ASSIGN_OR_RETURN(ProgramGraph graph,
                          GraphAt(setting, classes.programs, RatesOfClasses(setting, view, classes, &writer).get(), &writer));
  return std::move(graph.graph);
}

}  // namespace motley::planner
