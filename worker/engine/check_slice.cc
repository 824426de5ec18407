#include "worker/engine/check_slice.h"

#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/engine/rank_arrays.h"

namespace motley::engine {
namespace {

class Checker {
 public:
  Checker(const RankAssignment& assignment, const Program& program)
      : assignment_(assignment), program_(program), arrays_(assignment) {}

  absl::Status Run() {
    MOTLEY_RETURN_IF_ERROR(CheckOwned());
    MOTLEY_RETURN_IF_ERROR(CheckShards("parameter", program_.parameter_buffers));
    MOTLEY_RETURN_IF_ERROR(CheckShards("gradient", program_.gradient_buffers));
    for (at_ = 0; at_ < program_.instructions.size(); ++at_) {
      MOTLEY_RETURN_IF_ERROR(std::visit([this](const auto& op) { return Check(op); }, program_.instructions[at_].op));
    }
    if (whole()) return absl::OkStatus();
    for (const auto& [unit, microbatch] : run_) {
      if (summed_.contains({unit, microbatch})) continue;
      return Misfit(absl::StrCat("what its slice makes in unit ", unit, " of microbatch ", microbatch, " is never summed"));
    }
    return absl::OkStatus();
  }

 private:
  bool whole() const { return assignment_.slice.whole(); }
  bool IsLayer(int32_t unit) const { return unit > 0 && unit < program_.num_units - 1; }
  bool IsHead(int32_t unit) const { return unit == program_.num_units - 1; }

  absl::Status Misfit(const std::string& what) const {
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", program_.rank, ": ", what));
  }
  absl::Status Error(const std::string& what) const {
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", program_.rank, ", instruction ", at_, " (",
                                                      std::string(OperationName(program_.instructions[at_].op)), "): ", what));
  }

  // Every range that the rank owns of what the program holds is in its array, in one piece.
  absl::Status CheckOwned() const {
    for (int32_t block = 0; block < assignment_.ownership.num_blocks(); ++block) {
      for (const OwnedRange& range : assignment_.ownership.Of(block)) {
        if (range.rank != program_.rank) continue;
        const std::vector<LocalPiece> pieces = arrays_.slices().PiecesOf(block, range.begin, range.end);
        if (pieces.size() == 1 && pieces[0].elements == range.size()) continue;
        return Misfit(absl::StrCat("it owns elements ", range.begin, " to ", range.end, " of block ", block,
                                   ", which are not in its slice"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckShards(const char* what, const std::vector<UnitBuffer>& buffers) const {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!buffers[i].IsShard()) continue;
      const int64_t kept = arrays_.shards().NumElements(buffers[i].home_of);
      if (kept == buffers[i].elements) continue;
      return Misfit(absl::StrCat(what, " buffer ", i, " has ", buffers[i].elements, " elements for its shard of unit ",
                                 buffers[i].home_of, ", of which it keeps ", kept));
    }
    return absl::OkStatus();
  }

  template <typename Op>
  absl::Status Check(const Op& op) {
    if constexpr (std::is_same_v<Op, Gather> || std::is_same_v<Op, ReduceScatter>) return CheckElements(op);
    if constexpr (std::is_same_v<Op, AllReduceActivation> || std::is_same_v<Op, BroadcastActivation>) return CheckGroup(op);
    if constexpr (requires { op.segment, op.microbatch; }) return CheckSegment(op);
    return absl::OkStatus();
  }

  const UnitBuffer& BufferOf(const Gather& op) const { return program_.parameter_buffers[static_cast<size_t>(op.buffer)]; }
  const UnitBuffer& BufferOf(const ReduceScatter& op) const { return program_.gradient_buffers[static_cast<size_t>(op.grad)]; }

  template <typename Op>
  absl::Status CheckElements(const Op& op) const {
    const MovedElements moved = arrays_.MovedBy(program_, op);
    const ElementRange& within = moved.within;
    const int64_t there = arrays_.In(BufferOf(op)).NumElements(op.unit);
    if (within.end > there) {
      return Error(absl::StrCat("elements ", within.begin, " to ", within.end, ": the rank has ", there, " of unit ", op.unit));
    }
    const int64_t owned = ElementsOf(moved.owners);
    if (owned == within.size()) return absl::OkStatus();
    return Error(absl::StrCat("of ", within.size(), " elements of unit ", op.unit, " group ", op.group, " owns ", owned));
  }

  template <typename Op>
  absl::Status CheckGroup(const Op& op) {
    if (whole()) return Error("the rank computes whole units: there is nothing to be added or handed on");
    if (assignment_.slice.leads() != (program_.groups[static_cast<size_t>(op.group)].front() == program_.rank)) {
      return Error(absl::StrCat("the rank that has the first slice is the first of its group, and it alone; group ", op.group,
                                " begins otherwise"));
    }
    if constexpr (std::is_same_v<Op, AllReduceActivation>) summed_.insert({op.unit, op.microbatch});
    return absl::OkStatus();
  }

  // Of a slice.
  template <typename Op>
  absl::Status CheckSegment(const Op& op) {
    if (whole()) return absl::OkStatus();
    constexpr bool kForward = std::is_same_v<Op, Forward>;
    constexpr bool kNeedsSums = kForward || std::is_same_v<Op, Backward> || std::is_same_v<Op, BackwardInput>;
    const bool in_segments = IsLayer(op.unit) || (kForward && IsHead(op.unit));
    if (kNeedsSums && in_segments && op.segment == UnitSegment::kWhole) {
      return Error(absl::StrCat("unit ", op.unit, " runs whole, and the rank has a part of it: sums stand between its segments"));
    }
    if constexpr (kForward) run_.insert({op.unit, op.microbatch});
    return absl::OkStatus();
  }

  const RankAssignment& assignment_;
  const Program& program_;
  const RankArrays arrays_;
  size_t at_ = 0;                                       // the present instruction
  std::set<std::pair<int32_t, int32_t>> run_, summed_;  // unit and microbatch
};

}  // namespace

absl::Status CheckSlice(const RankAssignment& assignment, const Program& program) { return Checker(assignment, program).Run(); }

}  // namespace motley::engine
