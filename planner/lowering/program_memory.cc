#include "planner/lowering/program_memory.h"

#include <algorithm>

namespace motley::planner {
namespace {

// Walks the instructions in the order of the program. Between units lives one activation (forward) or its gradient (backward) per
// microbatch.
class Ledger {
 public:
  Ledger(const Costs& costs, int kind, const Program& program) : costs_(costs), kind_(kind), program_(program) {}

  int64_t Peak() {
    for (const Instruction& instruction : program_.instructions) {
      std::visit([this](const auto& op) { Walk(op); }, instruction.op);
    }
    return peak_;
  }

 private:
  struct Sizes {
    int64_t input, output, saved, workspace;
  };
  // The embedding's input are tokens, counted with what it saves; the head's output is a number.
  Sizes SizesOf(int32_t unit, int32_t microbatch) const {
    const int64_t m = program_.microbatches[microbatch].samples;
    const UnitKind unit_kind = UnitKindOf(program_, unit);
    const auto samples = static_cast<double>(m);
    const int64_t boundary = costs_.BoundaryBytes(samples), input = unit_kind == UnitKind::kEmbedding ? 0 : boundary;
    return {input, unit_kind == UnitKind::kHead ? 0 : boundary,
            input + costs_.SavedBytes(kind_, unit_kind, OpSet::None(), samples),
            costs_.WorkspaceBytes(kind_, unit_kind, samples)};
  }
  void Touch(int64_t transient) { peak_ = std::max(peak_, live_ + transient); }

  // What is saved includes the input. Without keeping, internals still exist while the unit runs (an upper bound).
  void Walk(const Forward& f) {
    const Sizes s = SizesOf(f.unit, f.microbatch);
    Touch(s.saved - s.input + s.output + s.workspace);
    if (f.keep == Keep::kAll) live_ += s.saved - s.input;
    if (f.keep == Keep::kNothing) live_ -= s.input;
    live_ += s.output;
  }
  void Walk(const Recompute& r) {
    const Sizes s = SizesOf(r.unit, r.microbatch);
    Touch(s.saved - s.input + s.output + s.workspace);
    live_ += s.saved - s.input;
  }
  // The gradient of the output is there already; that of the input is made before the saved tensors are all gone.
  void Walk(const Backward& b) {
    const Sizes s = SizesOf(b.unit, b.microbatch);
    Touch(s.input + s.workspace);
    live_ += s.input - s.output - s.saved;
  }
  // What a border's other side makes or needs lives here from its receipt, or until it is sent.
  template <typename Op>
  int64_t HandedOver(const Op& op) const {
    return costs_.BoundaryBytes(static_cast<double>(op.samples));
  }
  template <typename Op>
  void Received(const Op& op) {
    live_ += HandedOver(op);
    Touch(0);
  }
  void Walk(const SendActivation& op) { live_ -= HandedOver(op); }
  void Walk(const SendGradient& op) { live_ -= HandedOver(op); }
  void Walk(const ReceiveActivation& op) { Received(op); }
  void Walk(const ReceiveGradient& op) { Received(op); }
  // These work in buffers that the program declares and in the owned shard, which the memory model counts apart.
  void Walk(const Gather&) {}
  void Walk(const Release&) {}
  void Walk(const ZeroGrad&) {}
  void Walk(const ReduceScatter&) {}
  void Walk(const ReduceScalars&) {}
  void Walk(const OptimizerStep&) {}

  const Costs& costs_;
  const int kind_;
  const Program& program_;
  int64_t live_ = 0, peak_ = 0;
};

}  // namespace

UnitKind UnitKindOf(const Program& program, int32_t unit) {
  if (unit == 0) return UnitKind::kEmbedding;
  return unit == program.num_units - 1 ? UnitKind::kHead : UnitKind::kLayer;
}

int64_t ActivationPeakBytes(const Costs& costs, int kind, const Program& program) { return Ledger(costs, kind, program).Peak(); }

}  // namespace motley::planner
