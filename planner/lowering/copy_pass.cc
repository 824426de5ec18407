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

class InputCopyPass {
 public:
  InputCopyPass(const CopyTraits& traits, std::vector<Operation> operations)
      : traits_(traits), operations_(std::move(operations)) {}

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

  template <typename Op>
  void Find(const Op& op) {
    constexpr bool kIsBackward = std::is_same_v<Op, Backward> || std::is_same_v<Op, BackwardInput>;
    if constexpr (std::is_same_v<Op, Forward>) {
      if (IsLastForward(op)) FindForward(op);
    }
    if constexpr (kIsBackward) {
      if (IsFirstBackward(op)) FindBackward(op);
    }
  }
  using Cell = std::pair<int32_t, int32_t>;  // unit, microbatch
  // Passes between an input's forward and its backward in which it would only leave and come back.
  int64_t too_soon() const { return static_cast<int64_t>(traits_.slots()) + 1; }

  void FindForward(const Forward& op) {
    if (const std::optional<OffloadActivation> inputs = InputsOf(op)) {
      ForCells(*inputs, [this](const Cell& cell) { forward_at_[cell] = passes_; });
    }
    CountPasses(op);
  }
  template <typename Op>
  void FindBackward(const Op& op) {
    CountPasses(op);
    const std::optional<OffloadActivation> inputs = InputsOf(op);
    bool leave = false;
    if (inputs) {
      ForCells(*inputs, [&](const Cell& cell) {
        if (passes_ - 1 - forward_at_[cell] <= too_soon()) return;
        leaves_.insert(cell);
        leave = true;
      });
    }
    inputs_.push_back(leave ? inputs : std::nullopt);
  }
  template <typename Op>
  void CountPasses(const Op& op) {
    passes_ += (int64_t{op.more_units} + 1) * (int64_t{op.more_microbatches} + 1);
  }
  // Of layers alone: the embedding's input are tokens, and the head's is used next.
  template <typename Op>
  std::optional<OffloadActivation> InputsOf(const Op& op) const {
    const int32_t first = std::max(op.unit, 1), last = std::min(op.unit + op.more_units, traits_.head - 1);
    if (first > last) return std::nullopt;
    return OffloadActivation{first, op.microbatch, last - first, op.more_microbatches};
  }
  template <typename Use>
  static void ForCells(const OffloadActivation& inputs, Use use) {
    for (int32_t unit = inputs.unit; unit <= inputs.unit + inputs.more_units; ++unit) {
      for (int32_t m = inputs.microbatch; m <= inputs.microbatch + inputs.more_microbatches; ++m) use(Cell(unit, m));
    }
  }
  bool AreAway(const OffloadActivation& inputs) const {
    bool away = true;
    ForCells(inputs, [&](const Cell& cell) { away &= !leaves_.contains(cell) || away_.contains(cell); });
    return away;
  }
  // A layer of a tensor-parallel unit goes forward in two, of which the second needs the input, too.
  static bool IsLastForward(const Forward& op) { return op.segment != UnitSegment::kAttention; }
  // And goes back in two, the last of which needs the input.
  template <typename Op>
  static bool IsFirstBackward(const Op& op) {
    return op.segment != UnitSegment::kAttention && op.segment != UnitSegment::kLogits;
  }
  template <typename Op>
  static bool IsLastBackward(const Op& op) {
    return op.segment != UnitSegment::kMlp && op.segment != UnitSegment::kLoss;
  }
  // Where forwards and backwards alternate, the next one's forward may be still to come.
  void PrefetchInputs() {
    for (; next_input_ < std::min(backwards_ + traits_.slots(), inputs_.size()); ++next_input_) {
      const std::optional<OffloadActivation>& inputs = inputs_[next_input_];
      if (!inputs) continue;
      if (!AreAway(*inputs)) return;
      const auto slot = static_cast<int32_t>(prefetches_++ % traits_.slots());
      Add(PrefetchActivation{inputs->unit, inputs->microbatch, slot, inputs->more_units, inputs->more_microbatches});
    }
  }
  void Visit(const Forward& op) {
    Add(op);
    const std::optional<OffloadActivation> inputs = InputsOf(op);
    if (!inputs || !IsLastForward(op)) return;
    bool leave = false;
    ForCells(*inputs, [&](const Cell& cell) { leave |= leaves_.contains(cell); });
    if (!leave) return;
    Add(*inputs);
    ForCells(*inputs, [this](const Cell& cell) { away_.insert(cell); });
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
    if (IsLastBackward(op)) ++backwards_;
    PrefetchInputs();
  }

  const CopyTraits& traits_;
  const std::vector<Operation> operations_;
  std::vector<Operation> result_;
  int64_t passes_ = 0;                                    // of a unit and a microbatch, as they were found
  absl::flat_hash_map<Cell, int64_t> forward_at_;         // the pass that uses the input first
  absl::flat_hash_set<Cell> leaves_;                      // inputs that wait in host memory
  absl::flat_hash_set<Cell> away_;                        // those that have left
  std::vector<std::optional<OffloadActivation>> inputs_;  // by backward: what comes back for it
  size_t next_input_ = 0, backwards_ = 0, prefetches_ = 0;
};

}  // namespace

std::vector<Operation> WithCopies(std::vector<Operation> operations, const CopyTraits& traits) {
  if (traits.offloads.activations) operations = InputCopyPass(traits, std::move(operations)).Run();
  return WithStateCopies(std::move(operations), traits);
}

}  // namespace motley::planner
