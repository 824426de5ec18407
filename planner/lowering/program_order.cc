#include "planner/lowering/program_order.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace motley::planner {
namespace {

// The unit that all ranks must mean by a collective; -1 = none, and for what ranks do on their own.
int32_t UnitTogether(const Gather& g) { return g.unit; }
int32_t UnitTogether(const ReduceScatter& r) { return r.unit; }
int32_t UnitTogether(const ReduceScalars&) { return -1; }

int32_t CollectiveUnit(const Operation& op) {
  return std::visit(
      []<typename Op>(const Op& o) -> int32_t {
        if constexpr (Op::kTraits.lane == Lane::kCollective) {
          return UnitTogether(o);
        } else {
          return -1;
        }
      },
      op);
}

// Walks all programs side by side from collective to collective.
class Walk {
 public:
  explicit Walk(const std::vector<Program>& programs) : programs_(programs), ranks_(programs.size()) {
    for (size_t r = 0; r < programs.size(); ++r) ranks_[r].done.assign(programs[r].instructions.size(), false);
  }

  absl::Status Run() {
    bool more = true;
    while (more) {
      for (size_t r = 0; r < ranks_.size(); ++r) WalkToCollective(r);
      MOTLEY_ASSIGN_OR_RETURN(more, MeetCollective());
    }
    for (const Rank& rank : ranks_) {
      if (std::any_of(rank.stuck.begin(), rank.stuck.end(), [](int32_t i) { return i >= 0; })) return Deadlock();
    }
    return absl::OkStatus();
  }

 private:
  struct Rank {
    size_t next = 0;
    std::vector<bool> done;                        // by instruction
    std::array<int32_t, kNumLanes> stuck{-1, -1};  // by lane: the instruction that cannot go on
  };

  const Instruction& At(size_t rank, int32_t index) const { return programs_[rank].instructions[index]; }
  bool HasNext(size_t rank) const { return ranks_[rank].next < programs_[rank].instructions.size(); }
  int32_t& Stuck(size_t rank, Lane lane) { return ranks_[rank].stuck[static_cast<size_t>(lane)]; }

  // First instruction of `after` that has not run, -1 when all have.
  int32_t WaitsFor(size_t rank, int32_t index) const {
    for (const int32_t a : At(rank, index).after) {
      if (!ranks_[rank].done[a]) return a;
    }
    return -1;
  }

  void WalkToCollective(size_t rank) {
    size_t& next = ranks_[rank].next;
    for (; HasNext(rank); ++next) {
      const auto index = static_cast<int32_t>(next);
      if (LaneOf(At(rank, index).op) == Lane::kCollective) return;
      if (Stuck(rank, Lane::kCompute) >= 0) continue;
      if (WaitsFor(rank, index) >= 0) {
        Stuck(rank, Lane::kCompute) = index;
        continue;
      }
      ranks_[rank].done[next] = true;
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
    if (all) MOTLEY_RETURN_IF_ERROR(CheckMatch());
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (!HasNext(r)) continue;
      if (all) ranks_[r].done[ranks_[r].next] = true;
      if (!all && Stuck(r, Lane::kCollective) < 0) Stuck(r, Lane::kCollective) = static_cast<int32_t>(ranks_[r].next);
      ++ranks_[r].next;
    }
    return true;
  }

  absl::Status CheckMatch() const {
    const auto first = static_cast<int32_t>(ranks_[0].next);
    const Operation& op = At(0, first).op;
    for (size_t r = 1; r < ranks_.size(); ++r) {
      const auto index = static_cast<int32_t>(ranks_[r].next);
      const Operation& other = At(r, index).op;
      if (other.index() == op.index() && CollectiveUnit(other) == CollectiveUnit(op)) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("collectives do not match: rank 0 is at ", Describe(0, first), ", rank ", r, " at ", Describe(r, index)));
    }
    return absl::OkStatus();
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

  const std::vector<Program>& programs_;
  std::vector<Rank> ranks_;
};

}  // namespace

absl::Status CheckOrder(const std::vector<Program>& programs) {
  if (programs.empty()) return absl::FailedPreconditionError("no programs: a plan has at least one rank");
  return Walk(programs).Run();
}

}  // namespace motley::planner
