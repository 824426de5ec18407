#include "planner/live/program_graph.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace motley::planner {
namespace {

UnitKind KindOf(const Program& program, int32_t unit) {
  if (unit == 0) return UnitKind::kEmbedding;
  return unit == program.num_units - 1 ? UnitKind::kHead : UnitKind::kLayer;
}

// The unit of a collective, -1 for the scalars.
int32_t CollectiveUnit(const Operation& op) {
  if (const auto* g = std::get_if<Gather>(&op)) return g->unit;
  if (const auto* r = std::get_if<ReduceScatter>(&op)) return r->unit;
  return -1;
}

TaskKind KindOf(const Operation& op) {
  if (std::holds_alternative<Forward>(op)) return TaskKind::kForward;
  if (std::holds_alternative<Recompute>(op)) return TaskKind::kRecompute;
  if (std::holds_alternative<Backward>(op)) return TaskKind::kBackward;
  if (std::holds_alternative<OptimizerStep>(op)) return TaskKind::kOptimizer;
  if (std::holds_alternative<Gather>(op)) return TaskKind::kGather;
  if (std::holds_alternative<ReduceScatter>(op)) return TaskKind::kReduceScatter;
  if (std::holds_alternative<ReduceScalars>(op)) return TaskKind::kScalars;
  return TaskKind::kWait;  // releases and zeroes: no time, but others wait for them
}

// Walks all programs side by side from collective to collective. Invariant: an instruction has a task when everything before it
// on its lane and all of its `after` have one.
class Builder {
 public:
  Builder(const CostModel& cost, const std::vector<UnitPlacement>& placement, const std::vector<Program>& programs)
      : cost_(cost), placement_(placement), programs_(programs), ranks_(programs.size()) {
    size_t instructions = 0;
    result_.tasks.resize(programs.size());
    for (size_t r = 0; r < programs.size(); ++r) {
      result_.tasks[r].assign(programs[r].instructions.size(), -1);
      instructions += programs[r].instructions.size();
      Actor actor;
      actor.name = cost.device(static_cast<int>(r)).id.value();
      actor.device = static_cast<int>(r);
      result_.graph.actors.push_back(std::move(actor));
    }
    result_.graph.tasks.reserve(instructions);
    for (const UnitPlacement& p : placement) {
      const int64_t total = p.bounds.back();
      int64_t largest = 0;
      for (size_t r = 0; r + 1 < p.bounds.size(); ++r) largest = std::max(largest, p.bounds[r + 1] - p.bounds[r]);
      skews_.push_back(total > 0 ? static_cast<double>(largest) / static_cast<double>(total) : 1.0);
    }
  }

  absl::StatusOr<ProgramGraph> Build() {
    bool more = true;
    while (more) {
      for (size_t r = 0; r < ranks_.size(); ++r) WalkToCollective(r);
      MOTLEY_ASSIGN_OR_RETURN(more, MeetCollective());
    }
    for (const Rank& rank : ranks_) {
      if (std::any_of(rank.stuck.begin(), rank.stuck.end(), [](int32_t i) { return i >= 0; })) return Deadlock();
    }
    AddOverheads();
    return std::move(result_);
  }

 private:
  struct Rank {
    size_t next = 0;
    int32_t last_collective = -1;                  // task
    std::array<int32_t, kNumLanes> stuck{-1, -1};  // by lane: the instruction that cannot go on
  };

  const Instruction& At(size_t rank, int32_t index) const { return programs_[rank].instructions[static_cast<size_t>(index)]; }
  int32_t& TaskOf(size_t rank, int32_t index) { return result_.tasks[rank][static_cast<size_t>(index)]; }
  int32_t TaskOf(size_t rank, int32_t index) const { return result_.tasks[rank][static_cast<size_t>(index)]; }
  bool HasNext(size_t rank) const { return ranks_[rank].next < programs_[rank].instructions.size(); }
  int32_t& Stuck(size_t rank, Lane lane) { return ranks_[rank].stuck[static_cast<size_t>(lane)]; }

  // First instruction of `after` that cannot run, -1 when all can.
  int32_t WaitsFor(size_t rank, int32_t index) const {
    for (const int32_t a : At(rank, index).after) {
      if (TaskOf(rank, a) < 0) return a;
    }
    return -1;
  }

  Picoseconds ComputeTime(size_t rank, const Operation& op) const {
    const Program& program = programs_[rank];
    const int r = static_cast<int>(rank);
    const auto samples = [&](int32_t microbatch) { return program.microbatches[static_cast<size_t>(microbatch)]; };
    double seconds = 0;
    if (const auto* f = std::get_if<Forward>(&op)) {
      seconds = cost_.ForwardSeconds(r, KindOf(program, f->unit), samples(f->microbatch));
    } else if (const auto* c = std::get_if<Recompute>(&op)) {
      seconds = cost_.ForwardSeconds(r, KindOf(program, c->unit), samples(c->microbatch));
    } else if (const auto* b = std::get_if<Backward>(&op)) {
      seconds = cost_.BackwardSeconds(r, KindOf(program, b->unit), samples(b->microbatch));
    } else if (std::holds_alternative<OptimizerStep>(op)) {
      seconds = cost_.OptimizerSeconds(r, OwnedElements(placement_, rank));
    }
    return ToPicoseconds(seconds);
  }

  Picoseconds CollectiveTime(const Operation& op) const {
    const int32_t unit = CollectiveUnit(op);
    if (unit < 0) return ToPicoseconds(cost_.BarrierSeconds());
    const size_t u = static_cast<size_t>(unit);
    const int64_t bytes = placement_[u].bounds.back() * cost_.element_bytes();
    return ToPicoseconds(std::holds_alternative<Gather>(op) ? cost_.AllGatherSeconds(bytes, skews_[u])
                                                            : cost_.ReduceScatterSeconds(bytes, skews_[u]));
  }

  Task MakeTask(const Operation& op) const {
    Task task;
    task.kind = KindOf(op);
    std::visit(
        [&task](const auto& o) {
          if constexpr (requires { o.unit; }) task.unit = o.unit;
          if constexpr (requires { o.microbatch; }) task.microbatch = o.microbatch;
        },
        op);
    return task;
  }
  void AddRank(size_t rank, int32_t index, Task* task) {
    task->lanes.push_back(
        static_cast<int32_t>(rank) * kLanesPerActor +
        static_cast<int32_t>(LaneOf(At(rank, index).op) == Lane::kCompute ? LaneKind::kCompute : LaneKind::kCollective));
    for (const int32_t a : At(rank, index).after) task->after.push_back(TaskOf(rank, a));
    TaskOf(rank, index) = static_cast<int32_t>(result_.graph.tasks.size());
  }

  void WalkToCollective(size_t rank) {
    size_t& next = ranks_[rank].next;
    for (; HasNext(rank); ++next) {
      const auto index = static_cast<int32_t>(next);
      const Operation& op = At(rank, index).op;
      if (LaneOf(op) == Lane::kCollective) return;
      if (Stuck(rank, Lane::kCompute) >= 0) continue;
      if (WaitsFor(rank, index) >= 0) {
        Stuck(rank, Lane::kCompute) = index;
        continue;
      }
      Task task = MakeTask(op);
      task.duration = ComputeTime(rank, op);
      AddRank(rank, index, &task);
      result_.graph.tasks.push_back(std::move(task));
    }
  }

  // The next collective of all ranks; where one of them never gets to it, all others are stuck. False when none is left.
  absl::StatusOr<bool> MeetCollective() {
    bool any = false, all = true;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto index = static_cast<int32_t>(ranks_[r].next);
      any |= HasNext(r);
      all = all && HasNext(r) && Stuck(r, Lane::kCollective) < 0 && WaitsFor(r, index) < 0;
    }
    if (!any) return false;
    if (all) MOTLEY_RETURN_IF_ERROR(AddCollective());
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (!HasNext(r)) continue;
      if (!all && Stuck(r, Lane::kCollective) < 0) Stuck(r, Lane::kCollective) = static_cast<int32_t>(ranks_[r].next);
      ++ranks_[r].next;
    }
    return true;
  }

  absl::Status AddCollective() {
    const auto first = static_cast<int32_t>(ranks_[0].next);
    const Operation& op = At(0, first).op;
    Task task = MakeTask(op);
    task.duration = CollectiveTime(op);
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto index = static_cast<int32_t>(ranks_[r].next);
      const Operation& other = At(r, index).op;
      if (other.index() != op.index() || CollectiveUnit(other) != CollectiveUnit(op)) {
        return absl::FailedPreconditionError(absl::StrCat("collectives do not match: rank 0 is at ", Describe(0, first),
                                                          ", rank ", r, " at ", Describe(r, index)));
      }
      AddRank(r, index, &task);
      ranks_[r].last_collective = TaskOf(r, index);
    }
    result_.graph.tasks.push_back(std::move(task));
    return absl::OkStatus();
  }

  void AddOverheads() {
    result_.overhead_tasks.assign(ranks_.size(), -1);
    for (size_t r = 0; r < ranks_.size(); ++r) {
      Task task;
      task.kind = TaskKind::kOverhead;
      task.duration = ToPicoseconds(cost_.StepOverheadSeconds(static_cast<int>(r)));
      if (task.duration == 0) continue;
      task.lanes = {static_cast<int32_t>(r) * kLanesPerActor};
      if (ranks_[r].last_collective >= 0) task.after = {ranks_[r].last_collective};
      result_.overhead_tasks[r] = static_cast<int32_t>(result_.graph.tasks.size());
      result_.graph.tasks.push_back(std::move(task));
    }
  }

  std::string Describe(size_t rank, int32_t index) const {
    const Operation& op = At(rank, index).op;
    const int32_t unit = CollectiveUnit(op);
    return absl::StrCat("instruction ", index, " (", std::string(OperationName(op)),
                        unit >= 0 ? absl::StrCat(" unit ", unit) : "", ")");
  }

  absl::Status Deadlock() const {
    std::string text = "the programs deadlock:";
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (const int32_t index : ranks_[r].stuck) {
        if (index < 0) continue;
        const int32_t waits = WaitsFor(r, index);
        absl::StrAppend(&text, " rank ", r, " is stuck at ", Describe(r, index), " waiting for ",
                        waits >= 0 ? Describe(r, waits) : std::string("the other ranks"), ";");
      }
    }
    text.pop_back();
    return absl::FailedPreconditionError(text);
  }

  const CostModel& cost_;
  const std::vector<UnitPlacement>& placement_;
  const std::vector<Program>& programs_;
  std::vector<Rank> ranks_;
  std::vector<double> skews_;  // by unit: the largest share
  ProgramGraph result_;
};

absl::Status CheckShapes(const CostModel& cost, const std::vector<UnitPlacement>& placement,
                         const std::vector<Program>& programs) {
  if (programs.empty() || static_cast<int>(programs.size()) != cost.world()) {
    return absl::FailedPreconditionError(absl::StrCat(programs.size(), " programs for ", cost.world(), " ranks"));
  }
  for (size_t r = 0; r < programs.size(); ++r) {
    if (static_cast<size_t>(programs[r].num_units) == placement.size()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("program of rank ", r, " has ", programs[r].num_units, " units, the placement ", placement.size()));
  }
  for (size_t u = 0; u < placement.size(); ++u) {
    if (placement[u].bounds.size() == programs.size() + 1) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("placement of unit ", u, " has ", placement[u].bounds.size(), " bounds for ", programs.size(), " ranks"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t OwnedElements(const std::vector<UnitPlacement>& placement, size_t rank) {
  int64_t sum = 0;
  for (const UnitPlacement& p : placement) sum += p.bounds[rank + 1] - p.bounds[rank];
  return sum;
}

absl::StatusOr<ProgramGraph> GraphOfPrograms(const CostModel& cost, const std::vector<UnitPlacement>& placement,
                                             const std::vector<Program>& programs) {
  MOTLEY_RETURN_IF_ERROR(CheckShapes(cost, placement, programs));
  return Builder(cost, placement, programs).Build();
}

}  // namespace motley::planner
