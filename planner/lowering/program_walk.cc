#include "planner/lowering/program_walk.h"

#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace motley::planner {
namespace {

// What all ranks of a group must mean by a collective. Group -1 = all ranks, unit -1 = none.
struct Together {
  int32_t group = -1, unit = -1;
};
Together TogetherBy(const Gather& g) { return {g.group, g.unit}; }
Together TogetherBy(const ReduceScatter& r) { return {r.group, r.unit}; }
Together TogetherBy(const ReduceScalars&) { return {}; }

std::optional<Together> TogetherOf(const Operation& op) {
  return std::visit(
      []<typename Op>(const Op& o) -> std::optional<Together> {
        if constexpr (Op::kTraits.lane == Lane::kCollective) {
          return TogetherBy(o);
        } else {
          return std::nullopt;
        }
      },
      op);
}

// What both ends of a hand-over must mean.
struct HandOver {
  int32_t peer = 0, unit = 0, first = 0, samples = 0;
  bool gradient = false;
  bool Matches(const HandOver& other) const {
    return unit == other.unit && first == other.first && samples == other.samples && gradient == other.gradient;
  }
};
template <typename Op>
HandOver HandOverBy(const Op& op, bool gradient) {
  return {op.peer, op.unit, op.first, op.samples, gradient};
}
std::optional<HandOver> HandOverOf(const Operation& op) {
  if (const auto* o = std::get_if<SendActivation>(&op)) return HandOverBy(*o, false);
  if (const auto* o = std::get_if<ReceiveActivation>(&op)) return HandOverBy(*o, false);
  if (const auto* o = std::get_if<SendGradient>(&op)) return HandOverBy(*o, true);
  if (const auto* o = std::get_if<ReceiveGradient>(&op)) return HandOverBy(*o, true);
  return std::nullopt;
}

// Runs all programs side by side until nothing moves.
class Walk {
 public:
  Walk(const std::vector<Program>& programs, WalkListener* listener)
      : programs_(programs), listener_(listener), ranks_(programs.size()), all_(programs.size()) {
    std::iota(all_.begin(), all_.end(), 0);
    for (size_t r = 0; r < programs.size(); ++r) {
      Rank& rank = ranks_[r];
      const std::vector<Instruction>& instructions = programs[r].instructions;
      rank.done.assign(instructions.size(), false);
      for (size_t i = 0; i < instructions.size(); ++i) {
        rank.lanes[static_cast<size_t>(LaneOf(instructions[i].op))].queue.push_back(static_cast<int32_t>(i));
      }
    }
  }

  absl::Status Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t r = 0; r < ranks_.size(); ++r) {
        for (; Runs(r, Lane::kCompute); moved = true) {
          if (listener_ != nullptr) listener_->Ran(r, Head(r, Lane::kCompute));
          Done(r, Lane::kCompute);
        }
        MOTLEY_ASSIGN_OR_RETURN(const bool met, Meet(r));
        MOTLEY_ASSIGN_OR_RETURN(const bool sent, Send(r));
        moved |= met || sent;
      }
    }
    for (const Rank& rank : ranks_) {
      for (const LaneState& lane : rank.lanes) {
        if (lane.next < lane.queue.size()) return Deadlock();
      }
    }
    return absl::OkStatus();
  }

 private:
  struct LaneState {
    std::vector<int32_t> queue;
    size_t next = 0;
  };
  struct Rank {
    std::vector<bool> done;  // by instruction
    std::array<LaneState, kNumLanes> lanes;
  };

  const Instruction& At(size_t rank, int32_t index) const { return programs_[rank].instructions[index]; }
  LaneState& LaneOfRank(size_t rank, Lane lane) { return ranks_[rank].lanes[static_cast<size_t>(lane)]; }
  // The lane's next instruction; -1 = none is left.
  int32_t Head(size_t rank, Lane lane) const {
    const LaneState& state = ranks_[rank].lanes[static_cast<size_t>(lane)];
    return state.next < state.queue.size() ? state.queue[state.next] : -1;
  }
  // First instruction of `after` that has not run, -1 when all have.
  int32_t WaitsFor(size_t rank, int32_t index) const {
    for (const int32_t a : At(rank, index).after) {
      if (!ranks_[rank].done[a]) return a;
    }
    return -1;
  }
  bool Runs(size_t rank, Lane lane) const {
    const int32_t head = Head(rank, lane);
    return head >= 0 && WaitsFor(rank, head) < 0;
  }
  void Done(size_t rank, Lane lane) {
    LaneState& state = LaneOfRank(rank, lane);
    ranks_[rank].done[state.queue[state.next++]] = true;
  }

  // The collective that rank `r` is at, if all of its group are there.
  absl::StatusOr<bool> Meet(size_t r) {
    if (!Runs(r, Lane::kCollective)) return false;
    const int32_t own = Head(r, Lane::kCollective);
    const Operation& op = At(r, own).op;
    const Together together = *TogetherOf(op);
    const std::vector<int32_t>& members = together.group < 0 ? all_ : programs_[r].groups[together.group];
    bool all = true;
    for (const int32_t m : members) {
      const auto member = static_cast<size_t>(m);
      const int32_t head = Head(member, Lane::kCollective);
      if (head < 0) return false;
      const Operation& other = At(member, head).op;
      const Together its = *TogetherOf(other);
      if (its.group == together.group && (other.index() != op.index() || its.unit != together.unit)) {
        return absl::FailedPreconditionError(absl::StrCat("collectives do not match: rank ", r, " is at ", Describe(r, own),
                                                          ", rank ", m, " at ", Describe(member, head)));
      }
      all = all && its.group == together.group && Runs(member, Lane::kCollective);
    }
    if (!all) return false;
    if (listener_ != nullptr) {
      std::vector<RankInstruction> together_now;
      for (const int32_t m : members)
        together_now.push_back({static_cast<size_t>(m), Head(static_cast<size_t>(m), Lane::kCollective)});
      listener_->Met(together_now);
    }
    for (const int32_t m : members) Done(static_cast<size_t>(m), Lane::kCollective);
    return true;
  }

  // The hand-over that rank `r` is at, if its peer is there.
  absl::StatusOr<bool> Send(size_t r) {
    if (!Runs(r, Lane::kSend)) return false;
    const int32_t own = Head(r, Lane::kSend);
    const HandOver mine = *HandOverOf(At(r, own).op);
    const auto peer = static_cast<size_t>(mine.peer);
    const int32_t head = Head(peer, Lane::kReceive);
    if (head < 0) return false;
    const HandOver its = *HandOverOf(At(peer, head).op);
    if (its.peer != static_cast<int32_t>(r)) return false;
    if (!mine.Matches(its)) {
      return absl::FailedPreconditionError(absl::StrCat("hand-overs do not match: rank ", r, " is at ", Describe(r, own),
                                                        ", rank ", peer, " at ", Describe(peer, head)));
    }
    if (!Runs(peer, Lane::kReceive)) return false;
    if (listener_ != nullptr) listener_->HandedOver({r, own}, {peer, head});
    Done(r, Lane::kSend);
    Done(peer, Lane::kReceive);
    return true;
  }

  std::string Describe(size_t rank, int32_t index) const {
    const Operation& op = At(rank, index).op;
    std::string what;
    if (const auto together = TogetherOf(op); together && together->unit >= 0) what = absl::StrCat(" unit ", together->unit);
    if (const auto handed = HandOverOf(op)) {
      what = absl::StrCat(" unit ", handed->unit, " samples ", handed->first, " to ", handed->first + handed->samples, " peer ",
                          handed->peer);
    }
    return absl::StrCat("instruction ", index, " (", std::string(OperationName(op)), what, ")");
  }

  absl::Status Deadlock() const {
    std::string text = "the programs deadlock:";
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (size_t lane = 0; lane < kNumLanes; ++lane) {
        const int32_t index = Head(r, static_cast<Lane>(lane));
        if (index < 0) continue;
        const int32_t waits = WaitsFor(r, index);
        absl::StrAppend(&text, " rank ", r, " is stuck at ", Describe(r, index), " waiting for ",
                        waits >= 0 ? Describe(r, waits) : std::string("the other ranks"), ";");
      }
    }
    text.pop_back();
    return absl::FailedPreconditionError(text);
  }

  const std::vector<Program>& programs_;
  WalkListener* const listener_;
  std::vector<Rank> ranks_;
  std::vector<int32_t> all_;
};

}  // namespace

absl::Status WalkPrograms(const std::vector<Program>& programs, WalkListener* listener) {
  if (programs.empty()) return absl::FailedPreconditionError("no programs: a plan has at least one rank");
  for (const Program& program : programs) {
    if (program.groups == programs[0].groups && program.world == static_cast<int32_t>(programs.size())) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", program.rank, "'s program is of ", program.world, " ranks or other groups than rank 0's"));
  }
  return Walk(programs, listener).Run();
}

}  // namespace motley::planner
