#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "planner/lowering/rank_passes.h"

namespace motley::planner {
namespace {

// Pieces in which offloaded optimizer state streams through the device.
constexpr size_t kStreamPieces = 8;
// Backwards whose inputs are on the device or on their way.
constexpr size_t kAhead = 2;

class CopyPass {
 public:
  CopyPass(const CopyTraits& traits, std::vector<Operation> operations) : traits_(traits), operations_(std::move(operations)) {}

  std::vector<Operation> Run() {
    for (const Operation& operation : operations_) {
      std::visit([this](const auto& op) { Find(op); }, operation);
    }
    for (const Operation& operation : operations_) {
      std::visit([this](const auto& op) { Visit(op); }, operation);
    }
    return std::move(result_);
  }

 private:
  void Add(Operation op) { result_.push_back(std::move(op)); }

  template <typename Op>
  void Visit(const Op& op) {
    Add(op);
  }
  // A rank of a tensor-parallel unit gathers and sums the ranges of a unit's array one after another.
  template <typename Op>
  bool GoesOn(const Op& op) const {
    const auto* last = result_.empty() ? nullptr : std::get_if<Op>(&result_.back());
    return last != nullptr && last->unit == op.unit && !op.elements.whole();
  }

  // ---- activations ----

  template <typename Op>
  void Find(const Op& op) {
    constexpr bool kIsBackward = std::is_same_v<Op, Backward> || std::is_same_v<Op, BackwardInput>;
    if constexpr (std::is_same_v<Op, ReduceScatter>) ++sums_of_[op.unit];
    if constexpr (kIsBackward) {
      if (IsFirstBackward(op)) inputs_.push_back(InputsOf<PrefetchActivation>(op));
    }
  }
  // Of layers alone: the embedding's input are tokens, and the head's is used next.
  template <typename Copy, typename Op>
  std::optional<Copy> InputsOf(const Op& op) const {
    const int32_t first = std::max(op.unit, 1), last = std::min(op.unit + op.more_units, traits_.head - 1);
    if (!traits_.activations || first > last) return std::nullopt;
    return Copy{first, op.microbatch, last - first, op.more_microbatches};
  }
  template <typename Copy, typename Use>
  static void ForCells(const Copy& copy, Use use) {
    for (int32_t unit = copy.unit; unit <= copy.unit + copy.more_units; ++unit) {
      for (int32_t m = copy.microbatch; m <= copy.microbatch + copy.more_microbatches; ++m) use(std::pair(unit, m));
    }
  }
  bool AreAway(const PrefetchActivation& inputs) const {
    bool away = true;
    ForCells(inputs, [&](const std::pair<int32_t, int32_t>& cell) { away &= away_.contains(cell); });
    return away;
  }
  // A layer of a tensor-parallel unit goes back in two.
  template <typename Op>
  static bool IsFirstBackward(const Op& op) {
    return op.segment != UnitSegment::kAttention;
  }
  // Where forwards and backwards alternate, the next one's forward may be still to come.
  void PrefetchInputs() {
    for (; next_input_ < std::min(backwards_ + kAhead, inputs_.size()); ++next_input_) {
      const std::optional<PrefetchActivation>& inputs = inputs_[next_input_];
      if (inputs && !AreAway(*inputs)) return;
      if (inputs) Add(*inputs);
    }
  }
  void Visit(const Forward& op) {
    Add(op);
    const auto inputs = InputsOf<OffloadActivation>(op);
    if (!inputs || op.segment == UnitSegment::kAttention) return;  // its second half needs it
    Add(*inputs);
    ForCells(*inputs, [this](const std::pair<int32_t, int32_t>& cell) { away_.insert(cell); });
  }
  void Visit(const Recompute& op) {
    PrefetchInputs();
    Add(op);
  }
  void Visit(const Backward& op) { AddBackward(op); }
  void Visit(const BackwardInput& op) { AddBackward(op); }
  template <typename Op>
  void AddBackward(const Op& op) {
    PrefetchInputs();
    Add(op);
    if (IsFirstBackward(op)) ++backwards_;
    PrefetchInputs();
  }

  // ---- parameters and moments ----

  void Visit(const Gather& op) {
    if (traits_.parameters && !GoesOn(op)) Add(PrefetchState{op.unit, State::kParameters, op.more_units});
    Add(op);
  }
  // A unit's optimizer comes when the device has gone on with the backward of the unit before.
  void Visit(const ReduceScatter& op) {
    if (traits_.steps_in_turn && !GoesOn(op)) StepSummed();
    Add(op);
    if (traits_.steps_in_turn && --sums_of_[op.unit] == 0) summed_.push_back(op.unit);
  }
  void StepSummed() {
    for (const int32_t unit : std::exchange(summed_, {})) Step(unit, 0);
  }
  void Visit(const ReduceScalars& op) {
    StepSummed();
    Add(op);
  }
  void Visit(const OptimizerStep& op) {
    if (traits_.steps_in_turn) return;
    if (!traits_.moments && !traits_.parameters) return Add(op);
    const size_t units = traits_.units.size(), pieces = std::min(units, traits_.moments ? kStreamPieces : 1);
    for (size_t i = 0; i < pieces; ++i) StepPiece(units * i / pieces, units * (i + 1) / pieces);
  }
  // Of the rank's units, run by run.
  void StepPiece(size_t begin, size_t end) {
    for (size_t last = begin; begin < end; begin = ++last) {
      while (last + 1 < end && traits_.units[last + 1] == traits_.units[last] + 1) ++last;
      Step(traits_.units[begin], traits_.units[last] - traits_.units[begin]);
    }
  }
  void Step(int32_t unit, int32_t more) {
    if (traits_.moments) Add(PrefetchState{unit, State::kMoments, more});
    Add(OptimizerStep{unit, more});
    if (traits_.moments) Add(OffloadState{unit, State::kMoments, more});
    if (traits_.parameters) Add(OffloadState{unit, State::kParameters, more});
  }

  const CopyTraits& traits_;
  const std::vector<Operation> operations_;
  std::vector<Operation> result_;
  std::vector<std::optional<PrefetchActivation>> inputs_;  // by backward
  size_t next_input_ = 0, backwards_ = 0;
  absl::flat_hash_set<std::pair<int32_t, int32_t>> away_;  // by unit and microbatch: inputs in host memory
  absl::flat_hash_map<int32_t, int> sums_of_;              // by unit: those to come
  std::vector<int32_t> summed_;                            // not yet stepped
};

}  // namespace

std::vector<Operation> WithCopies(std::vector<Operation> operations, const CopyTraits& traits) {
  return CopyPass(traits, std::move(operations)).Run();
}

}  // namespace motley::planner
