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

constexpr size_t kSteppedSoon = 3;  // units at the end of a step in turn

class StateCopyPass {
 public:
  StateCopyPass(const CopyTraits& traits, std::vector<Operation> operations)
      : traits_(traits), operations_(std::move(operations)), held_(traits.units.begin(), traits.units.end()) {}

  std::vector<Operation> Run() {
    for (at_ = 0; at_ < operations_.size(); ++at_) {
      std::visit([this](const auto& op) { Find(op); }, operations_[at_]);
    }
    FindOrder();
    for (at_ = 0; at_ < operations_.size(); ++at_) {
      std::visit([this](const auto& op) { Visit(op); }, operations_[at_]);
      if (stepped_behind_.contains(at_)) StepSummed();
    }
    return std::move(result_);
  }

 private:
  void Add(Operation op) { result_.push_back(std::move(op)); }

  template <typename Op>
  void Visit(const Op& op) {
    if constexpr (requires { op.grad, op.more_units; }) Writes(op.grad);
    if constexpr (requires { op.tied_grad; }) Writes(op.tied_grad);
    Add(op);
  }
  template <typename Op>
  static int32_t BufferOf(const Op& op) {
    if constexpr (std::is_same_v<Op, Gather>) return op.buffer;
    if constexpr (std::is_same_v<Op, ReduceScatter>) return op.grad;
  }
  // A rank of a tensor-parallel unit gathers and sums the ranges of a unit's array one after another.
  template <typename Op>
  bool GoesOn(const Op& op) const {
    const auto* last = at_ == 0 ? nullptr : std::get_if<Op>(&operations_[at_ - 1]);
    return last != nullptr && last->unit == op.unit && BufferOf(*last) == BufferOf(op) && !op.elements.whole();
  }

  void Visit(const Gather& op) {
    if (traits_.offloads.parameters && !GoesOn(op)) Add(PrefetchParameters{op.unit, op.buffer, op.more_units});
    Add(op);
  }

  // ---- sums ----

  // Operations: the first and the last range of a unit's last sum.
  struct LastSum {
    size_t begin = 0, end = 0;
  };
  template <typename Op>
  void Find(const Op& op) {
    if constexpr (std::is_same_v<Op, PrefetchActivation>) first_slot_ = std::max(first_slot_, op.slot + 1);
    if constexpr (std::is_same_v<Op, ReduceScatter>) {
      LastSum& sum = last_sums_[op.unit];
      if (!GoesOn(op)) sum.begin = at_;
      sum.end = at_;
    }
  }
  // Of steps: in turn that of the last sums. What the last units make has no long backward to leave beside then: those before the
  // last are stepped halfway in the next one's, when their sum has had half of it.
  void FindOrder() {
    order_ = traits_.units;
    if (!traits_.steps_in_turn) return;
    std::erase_if(order_, [this](int32_t unit) { return !last_sums_.contains(unit); });
    std::sort(order_.begin(), order_.end(), [this](int32_t a, int32_t b) { return last_sums_[a].begin < last_sums_[b].begin; });
    if (!traits_.offloads.takes_state()) return;
    for (size_t i = order_.size() < kSteppedSoon ? 0 : order_.size() - kSteppedSoon; i + 1 < order_.size(); ++i) {
      std::vector<size_t> backwards;
      for (size_t at = last_sums_[order_[i]].end + 1; at < last_sums_[order_[i + 1]].begin; ++at) {
        if (std::visit([](const auto& op) { return requires { op.tied_grad; }; }, operations_[at])) backwards.push_back(at);
      }
      if (backwards.size() > 1) stepped_behind_.insert(backwards[(backwards.size() - 1) / 2]);
    }
  }
  void Visit(const ReduceScatter& op) {
    const LastSum& last = last_sums_[op.unit];
    const bool held = held_.contains(op.unit);
    if (traits_.steps_in_turn && held && at_ == last.begin && op.unit == order_.front()) FetchAhead();
    if (traits_.steps_in_turn && !GoesOn(op)) StepSummed();
    Add(op);
    if (!held || at_ != last.end) return;
    if (traits_.offloads.gradients) Add(OffloadGradients{op.unit, op.grad});
    if (traits_.steps_in_turn) summed_ = {op.unit, traits_.sums_stay ? op.grad : -1};
  }

  // ---- steps ----

  // In turn a unit is stepped when the device has gone on with the backward of the unit before.
  void StepSummed() {
    if (const std::optional<Summed> last = std::exchange(summed_, std::nullopt)) Step(last->unit, last->grad);
  }
  // At the latest when its buffer is used again.
  void Writes(int32_t grad) {
    if (summed_ && grad >= 0 && summed_->grad == grad) StepSummed();
  }
  void Visit(const ReduceScalars& op) {
    StepSummed();
    Add(op);
  }
  // Or one after the other at the end, each while the next one comes.
  void Visit(const OptimizerStep& op) {
    if (traits_.steps_in_turn) return;
    if (!traits_.offloads.takes_state()) return Add(op);
    FetchAhead();
    for (const int32_t unit : order_) Step(unit, -1);
  }
  // As many as there are slots, which follow those of inputs and are taken in turn.
  void FetchAhead() {
    if (!traits_.offloads.takes_state()) return;
    for (; fetched_ < std::min(stepped_ + traits_.slots(), order_.size()); ++fetched_) {
      const int32_t unit = order_[fetched_], slot = first_slot_ + static_cast<int32_t>(fetched_ % traits_.slots());
      slot_of_[unit] = slot;
      Add(PrefetchOptimizer{unit, slot});
    }
  }
  void Step(int32_t unit, int32_t grad) {
    const auto slot = slot_of_.find(unit);
    Add(OptimizerStep{unit, 0, slot == slot_of_.end() ? -1 : slot->second, grad});
    if (slot == slot_of_.end()) return;
    Add(OffloadOptimizer{unit, slot->second});
    ++stepped_;
    FetchAhead();  // into the slot that it leaves
  }

  struct Summed {
    int32_t unit = -1, grad = -1;
  };
  const CopyTraits& traits_;
  const std::vector<Operation> operations_;
  const absl::flat_hash_set<int32_t> held_;  // units
  std::vector<Operation> result_;
  size_t at_ = 0;                                    // operation
  absl::flat_hash_map<int32_t, LastSum> last_sums_;  // by unit
  std::vector<int32_t> order_;                       // units, as they are stepped
  absl::flat_hash_set<size_t> stepped_behind_;       // operations behind which the unit summed last is stepped
  absl::flat_hash_map<int32_t, int32_t> slot_of_;    // likewise: of its optimizer
  std::optional<Summed> summed_;                     // and not yet stepped
  int32_t first_slot_ = 0;
  size_t fetched_ = 0, stepped_ = 0;  // units
};

}  // namespace

std::vector<Operation> WithStateCopies(std::vector<Operation> operations, const CopyTraits& traits) {
  return StateCopyPass(traits, std::move(operations)).Run();
}

}  // namespace motley::planner
