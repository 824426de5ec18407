#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

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
      std::visit([this](const auto& op) { FindBackward(op); }, operation);
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

  // ---- activations ----

  template <typename Op>
  void FindBackward(const Op& op) {
    constexpr bool kIsBackward = std::is_same_v<Op, Backward> || std::is_same_v<Op, BackwardInput>;
    if constexpr (kIsBackward) {
      if (traits_.activations) inputs_.push_back({op.unit, op.microbatch, op.more_units, op.more_microbatches});
    }
  }
  void PrefetchInputs() {
    for (; next_input_ < std::min(backwards_ + kAhead, inputs_.size()); ++next_input_) Add(inputs_[next_input_]);
  }
  void Visit(const Forward& op) {
    Add(op);
    if (traits_.activations) Add(OffloadActivation{op.unit, op.microbatch, op.more_units, op.more_microbatches});
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
    ++backwards_;
    PrefetchInputs();
  }

  // ---- parameters and moments ----

  void Visit(const Gather& op) {
    if (traits_.parameters) Add(PrefetchState{op.unit, State::kParameters, op.more_units});
    Add(op);
  }
  void Visit(const ReduceScatter& op) { AddSum(op); }
  void Visit(const AllReduce& op) { AddSum(op); }
  // A unit's optimizer comes when the device has gone on with the backward of the unit before.
  template <typename Op>
  void AddSum(const Op& op) {
    if (traits_.steps_in_turn) StepSummed();
    Add(op);
    if (traits_.steps_in_turn) summed_.push_back(op.unit);
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
    for (size_t i = 0; i < pieces; ++i) {
      const size_t begin = units * i / pieces, end = units * (i + 1) / pieces;
      Step(traits_.units[begin], traits_.units[end - 1] - traits_.units[begin]);
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
  std::vector<PrefetchActivation> inputs_;  // by backward
  size_t next_input_ = 0, backwards_ = 0;
  std::vector<int32_t> summed_;  // not yet stepped
};

}  // namespace

std::vector<Operation> WithCopies(std::vector<Operation> operations, const CopyTraits& traits) {
  return CopyPass(traits, std::move(operations)).Run();
}

}  // namespace motley::planner
