#include "planner/simulator/simulator.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "planner/simulator/memory_ledger.h"

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

int64_t OwnedElements(const std::vector<UnitPlacement>& placement, size_t rank) {
  int64_t sum = 0;
  for (const UnitPlacement& p : placement) sum += p.bounds[rank + 1] - p.bounds[rank];
  return sum;
}

class Machine {
 public:
  Machine(const CostModel& cost, const std::vector<UnitPlacement>& placement, const std::vector<Program>& programs)
      : cost_(cost), placement_(placement), programs_(programs), ranks_(programs.size()) {
    for (size_t r = 0; r < programs.size(); ++r) {
      const std::vector<Instruction>& instructions = programs[r].instructions;
      ranks_[r].done.assign(instructions.size(), false);
      ranks_[r].result.spans.resize(instructions.size());
      for (size_t i = 0; i < instructions.size(); ++i) {
        ranks_[r].lanes[static_cast<size_t>(LaneOf(instructions[i].op))].order.push_back(static_cast<int32_t>(i));
      }
    }
    for (const UnitPlacement& p : placement) {
      const int64_t total = p.bounds.back();
      int64_t largest = 0;
      for (size_t r = 0; r + 1 < p.bounds.size(); ++r) largest = std::max(largest, p.bounds[r + 1] - p.bounds[r]);
      skews_.push_back(total > 0 ? static_cast<double>(largest) / static_cast<double>(total) : 1.0);
    }
  }

  absl::StatusOr<Simulation> Run() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (size_t r = 0; r < ranks_.size(); ++r) progress |= RunComputeLane(r);
      MOTLEY_ASSIGN_OR_RETURN(const bool met, RunCollective());
      progress |= met;
    }
    for (const Rank& rank : ranks_) {
      for (const LaneState& lane : rank.lanes) {
        if (lane.next < lane.order.size()) return Deadlock();
      }
    }
    return Finish();
  }

 private:
  struct LaneState {
    std::vector<int32_t> order;  // instructions, in program order
    size_t next = 0;
    double free_seconds = 0;
  };
  struct Rank {
    std::array<LaneState, kNumLanes> lanes;
    std::vector<bool> done;
    SimulatedRank result;
  };

  LaneState& LaneAt(size_t rank, Lane lane) { return ranks_[rank].lanes[static_cast<size_t>(lane)]; }
  const Instruction& At(size_t rank, int32_t index) const { return programs_[rank].instructions[static_cast<size_t>(index)]; }

  // First instruction of `after` that has not run, -1 when all have.
  int32_t WaitsFor(size_t rank, int32_t index) const {
    for (const int32_t a : At(rank, index).after) {
      if (!ranks_[rank].done[static_cast<size_t>(a)]) return a;
    }
    return -1;
  }
  double ReadySeconds(size_t rank, const LaneState& lane, int32_t index) const {
    double ready = lane.free_seconds;
    for (const int32_t a : At(rank, index).after)
      ready = std::max(ready, ranks_[rank].result.spans[static_cast<size_t>(a)].end_seconds);
    return ready;
  }
  void Complete(size_t rank, LaneState& lane, double begin, double seconds) {
    const auto index = static_cast<size_t>(lane.order[lane.next]);
    ranks_[rank].result.spans[index] = {begin, begin + seconds};
    ranks_[rank].done[index] = true;
    lane.free_seconds = begin + seconds;
    ++lane.next;
  }

  double ComputeSeconds(size_t rank, const Operation& op) const {
    const Program& program = programs_[rank];
    const int r = static_cast<int>(rank);
    const auto samples = [&](int32_t microbatch) { return program.microbatches[static_cast<size_t>(microbatch)]; };
    if (const auto* f = std::get_if<Forward>(&op))
      return cost_.ForwardSeconds(r, KindOf(program, f->unit), samples(f->microbatch));
    if (const auto* f = std::get_if<Recompute>(&op))
      return cost_.ForwardSeconds(r, KindOf(program, f->unit), samples(f->microbatch));
    if (const auto* b = std::get_if<Backward>(&op))
      return cost_.BackwardSeconds(r, KindOf(program, b->unit), samples(b->microbatch));
    if (std::holds_alternative<OptimizerStep>(op)) return cost_.OptimizerSeconds(r, OwnedElements(placement_, rank));
    return 0;
  }

  bool RunComputeLane(size_t rank) {
    LaneState& lane = LaneAt(rank, Lane::kCompute);
    bool progress = false;
    while (lane.next < lane.order.size()) {
      const int32_t index = lane.order[lane.next];
      if (WaitsFor(rank, index) >= 0) break;
      const double seconds = ComputeSeconds(rank, At(rank, index).op);
      ranks_[rank].result.busy_seconds += seconds;
      Complete(rank, lane, ReadySeconds(rank, lane, index), seconds);
      progress = true;
    }
    return progress;
  }

  double CollectiveSeconds(const Operation& op) const {
    const int32_t unit = CollectiveUnit(op);
    if (unit < 0) return cost_.BarrierSeconds();
    const size_t u = static_cast<size_t>(unit);
    const int64_t bytes = placement_[u].bounds.back() * cost_.element_bytes();
    return std::holds_alternative<Gather>(op) ? cost_.AllGatherSeconds(bytes, skews_[u])
                                              : cost_.ReduceScatterSeconds(bytes, skews_[u]);
  }

  // The next collective of all ranks, if every rank has reached it.
  absl::StatusOr<bool> RunCollective() {
    double begin = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      LaneState& lane = LaneAt(r, Lane::kCollective);
      if (lane.next == lane.order.size() || WaitsFor(r, lane.order[lane.next]) >= 0) return false;
      begin = std::max(begin, ReadySeconds(r, lane, lane.order[lane.next]));
    }
    const LaneState& first = LaneAt(0, Lane::kCollective);
    const Operation& op = At(0, first.order[first.next]).op;
    for (size_t r = 1; r < ranks_.size(); ++r) {
      const LaneState& lane = LaneAt(r, Lane::kCollective);
      const Operation& other = At(r, lane.order[lane.next]).op;
      if (other.index() == op.index() && CollectiveUnit(other) == CollectiveUnit(op)) continue;
      return absl::FailedPreconditionError(absl::StrCat("collectives do not match: rank 0 is at ",
                                                        Describe(0, first.order[first.next]), ", rank ", r, " at ",
                                                        Describe(r, lane.order[lane.next])));
    }
    const double seconds = CollectiveSeconds(op);
    for (size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].result.collective_seconds += seconds;
      Complete(r, LaneAt(r, Lane::kCollective), begin, seconds);
    }
    collective_seconds_ += seconds;
    return true;
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
      for (const LaneState& lane : ranks_[r].lanes) {
        if (lane.next == lane.order.size()) continue;
        const int32_t index = lane.order[lane.next], waits = WaitsFor(r, index);
        absl::StrAppend(&text, " rank ", r, " is stuck at ", Describe(r, index), " waiting for ",
                        waits >= 0 ? Describe(r, waits) : std::string("the other ranks"), ";");
      }
    }
    text.pop_back();
    return absl::FailedPreconditionError(text);
  }

  Simulation Finish() {
    Simulation simulation;
    simulation.collective_seconds = collective_seconds_;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const int rank = static_cast<int>(r);
      double end = 0;
      for (const LaneState& lane : ranks_[r].lanes) end = std::max(end, lane.free_seconds);
      simulation.seconds = std::max(simulation.seconds, end + cost_.StepOverheadSeconds(rank));
      ranks_[r].result.peak_bytes = FixedBytes(cost_, rank, programs_[r]) + StateBytes(cost_, OwnedElements(placement_, r)) +
                                    ActivationPeakBytes(cost_, rank, programs_[r]);
      simulation.ranks.push_back(std::move(ranks_[r].result));
    }
    return simulation;
  }

  const CostModel& cost_;
  const std::vector<UnitPlacement>& placement_;
  const std::vector<Program>& programs_;
  std::vector<Rank> ranks_;
  std::vector<double> skews_;  // by unit: the largest share
  double collective_seconds_ = 0;
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

absl::StatusOr<Simulation> Simulate(const CostModel& cost, const std::vector<UnitPlacement>& placement,
                                    const std::vector<Program>& programs) {
  MOTLEY_RETURN_IF_ERROR(CheckShapes(cost, placement, programs));
  return Machine(cost, placement, programs).Run();
}

}  // namespace motley::planner
