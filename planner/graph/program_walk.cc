#include "planner/graph/program_walk.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/graph/program_meeting.h"

namespace motley::planner {
namespace {

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
      for (LaneState& lane : rank.lanes) lane.queue.reserve(instructions.size() / 2);
      for (size_t i = 0; i < instructions.size(); ++i) {
        rank.lanes[static_cast<size_t>(LaneOf(instructions[i].op))].queue.push_back(static_cast<int32_t>(i));
      }
    }
  }

  absl::Status Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t r = 0; r < ranks_.size(); ++r) {
        if (!std::exchange(ranks_[r].may_move, false)) continue;
        moved |= RunAlone(r, Lane::kCompute);
        moved |= RunAlone(r, Lane::kCopy);
        MOTLEY_ASSIGN_OR_RETURN(const bool computed, Meet(r, Lane::kCompute));
        MOTLEY_ASSIGN_OR_RETURN(const bool met, Meet(r, Lane::kCollective));
        MOTLEY_ASSIGN_OR_RETURN(const bool sent, Send(r));
        moved |= computed || met || sent;
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
    bool may_move = true;  // it or whoever it sends to has gone on since it was looked at
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
    ranks_[rank].may_move = true;
    const int32_t receive = Head(rank, Lane::kReceive);
    if (receive >= 0) ranks_[HandOverOf(At(rank, receive).op)->peer].may_move = true;
  }

  std::optional<Together> TogetherAt(size_t rank, int32_t index) const { return TogetherOf(programs_[rank], At(rank, index).op); }

  // What the rank needs nobody for. Whether there was anything.
  bool RunAlone(size_t r, Lane lane) {
    bool any = false;
    for (; Runs(r, lane) && !IsTogether(At(r, Head(r, lane)).op); any = true) {
      if (listener_ != nullptr) listener_->Ran(r, Head(r, lane));
      Done(r, lane);
    }
    return any;
  }

  const std::vector<int32_t>& MembersOf(size_t r, const Together& together) const {
    return together.group < 0 ? all_ : programs_[r].groups[together.group];
  }

  // What rank `r` is at with others on the lane, if all of its group are there. Invariant: the order in which collectives meet
  // here keeps every rank's, so that programs that come to their end have one global order.
  absl::StatusOr<bool> Meet(size_t r, Lane lane) {
    if (!Runs(r, lane)) return false;
    const int32_t own = Head(r, lane);
    if (!IsTogether(At(r, own).op)) return false;
    const std::optional<Together> together = TogetherAt(r, own);
    const std::vector<int32_t>& members = MembersOf(r, *together);
    bool all = true;
    for (const int32_t m : members) {
      const auto member = static_cast<size_t>(m);
      const int32_t head = Head(member, lane);
      if (head < 0) return false;
      const std::optional<Together> its = TogetherAt(member, head);
      const bool same_group = its && its->group == together->group;
      if (same_group && (At(member, head).op.index() != At(r, own).op.index() || *its != *together)) {
        return absl::FailedPreconditionError(absl::StrCat("collectives do not match: rank ", r, " is at ", Describe(r, own),
                                                          ", rank ", m, " at ", Describe(member, head)));
      }
      all = all && same_group && Runs(member, lane);
    }
    if (!all) return false;
    if (listener_ != nullptr) {
      std::vector<RankInstruction> together_now;
      for (const int32_t m : members) together_now.push_back({static_cast<size_t>(m), Head(static_cast<size_t>(m), lane)});
      listener_->Met(together_now);
    }
    for (const int32_t m : members) Done(static_cast<size_t>(m), lane);
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

  std::string Describe(size_t rank, int32_t index) const { return DescribeInstruction(programs_[rank], index); }

  // The rank's next collective of the group, from its lane's head on; -1 = none.
  int32_t NextOfGroup(size_t rank, int32_t group) const {
    const LaneState& lane = ranks_[rank].lanes[static_cast<size_t>(Lane::kCollective)];
    for (size_t i = lane.next; i < lane.queue.size(); ++i) {
      if (TogetherAt(rank, lane.queue[i])->group == group) return lane.queue[i];
    }
    return -1;
  }
  // A member of the rank's present collective that is at another one and has this one behind it; -1 = none.
  int LateMember(size_t rank) const {
    const Together together = *TogetherAt(rank, Head(rank, Lane::kCollective));
    for (const int32_t m : MembersOf(rank, together)) {
      const auto member = static_cast<size_t>(m);
      if (!Runs(member, Lane::kCollective)) continue;
      const int32_t head = Head(member, Lane::kCollective), next = NextOfGroup(member, together.group);
      if (next >= 0 && next != head) return m;
    }
    return -1;
  }
  // Two collectives for which ranks wait in a circle, and the rank that has them in the wrong order; empty: there are none.
  std::string Crossing() const {
    for (size_t start = 0; start < ranks_.size(); ++start) {
      std::vector<size_t> way;  // each waits for the next
      size_t rank = start;
      while (Runs(rank, Lane::kCollective) && std::find(way.begin(), way.end(), rank) == way.end()) {
        way.push_back(rank);
        const int late = LateMember(rank);
        if (late < 0) break;
        rank = static_cast<size_t>(late);
      }
      if (way.empty() || LateMember(way.back()) < 0) continue;
      const size_t waiter = way.back();
      const int32_t group = TogetherAt(waiter, Head(waiter, Lane::kCollective))->group;
      return absl::StrCat(
          "collectives cross at rank ", rank, ": it has ", Describe(rank, Head(rank, Lane::kCollective)), " before ",
          Describe(rank, NextOfGroup(rank, group)), ", but rank ", waiter,
          " is at the latter and comes to the former, or to what it waits for, behind it; all ranks must keep one "
          "order of collectives");
    }
    return "";
  }

  absl::Status Deadlock() const {
    std::string text = "the programs deadlock:";
    if (const std::string crossing = Crossing(); !crossing.empty()) absl::StrAppend(&text, " ", crossing, ";");
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
