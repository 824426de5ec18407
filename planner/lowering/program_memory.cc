#include "planner/lowering/program_memory.h"

#include <algorithm>
#include <vector>

namespace motley::planner {
namespace {

// Walks the instructions in the order of the program. Between units lives one activation (forward) or its gradient (backward) per
// microbatch.
class Ledger {
 public:
  Ledger(const Costs& costs, int kind, const Program& program, double tp_share)
      : costs_(costs), kind_(kind), program_(program), tp_share_(tp_share), held_(program.num_units, false) {
    for (const int32_t unit : program.units) held_[unit] = true;
  }

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
    const double samples = SamplesOf(microbatch);
    const UnitKind unit_kind = UnitKindOf(program_, unit);
    const int64_t boundary = costs_.BoundaryBytes(samples), input = unit_kind == UnitKind::kEmbedding ? 0 : boundary;
    return {input, unit_kind == UnitKind::kHead ? 0 : boundary,
            input + costs_.SavedBytes(kind_, unit_kind, OpSet::None(), samples, tp_share_),
            costs_.WorkspaceBytes(kind_, unit_kind, samples, tp_share_)};
  }
  double SamplesOf(int32_t microbatch) const { return static_cast<double>(program_.microbatches[microbatch].samples); }
  // What stays of a unit beside its input when nothing is kept of these operators.
  int64_t SavedWithout(uint32_t operators, int32_t unit, int32_t microbatch) const {
    return costs_.SavedBytes(kind_, UnitKindOf(program_, unit), OperatorSet(operators), SamplesOf(microbatch), tp_share_);
  }
  void Touch(int64_t transient) { peak_ = std::max(peak_, live_ + transient); }
  bool Held(int32_t unit) const { return unit >= 0 && unit < program_.num_units && held_[unit]; }
  // Whether another rank of the group hands over what this one has, too.
  bool Follows(int32_t group) const { return group != -1 && program_.groups[group].front() != program_.rank; }

  template <typename Op, typename Function>
  void ForCells(const Op& op, bool backward, Function walk) {
    for (int32_t i = 0; i <= op.more_units; ++i) {
      const int32_t unit = op.unit + (backward ? op.more_units - i : i);
      for (int32_t k = 0; k <= op.more_microbatches; ++k) walk(unit, op.microbatch + k);
    }
  }

  // What is saved includes the input. Without keeping, internals still exist while the unit runs (an upper bound). The first of
  // two segments counts as the unit, the second works in what is there.
  void Walk(const Forward& f) {
    ForCells(f, false, [&](int32_t unit, int32_t microbatch) {
      const Sizes s = SizesOf(unit, microbatch);
      if (IsSecond(f.segment)) return Touch(s.output + s.workspace);
      Touch(s.saved - s.input + s.output + s.workspace);
      if (f.keep == Keep::kAll) live_ += s.saved - s.input;
      if (f.keep == Keep::kBoundary) live_ += SavedWithout(f.operators, unit, microbatch);
      if (f.keep == Keep::kNothing) live_ -= s.input;
      live_ += s.output;
      if (Follows(f.tp_group) && unit + 1 < program_.num_units && !Held(unit + 1)) live_ -= s.output;
    });
  }
  void Walk(const Recompute& r) {
    ForCells(r, false, [&](int32_t unit, int32_t microbatch) {
      const Sizes s = SizesOf(unit, microbatch);
      if (IsSecond(r.segment)) return Touch(s.output + s.workspace);
      const int64_t again = s.saved - s.input - SavedWithout(r.operators, unit, microbatch);
      Touch(again + s.output + s.workspace);
      live_ += again;
    });
  }
  // The gradient of the output is there already; that of the input is made before the saved tensors are all gone.
  void Walk(const Backward& b) {
    ForCells(b, true, [&](int32_t unit, int32_t microbatch) {
      const Sizes s = SizesOf(unit, microbatch);
      Touch(s.input + s.workspace);
      if (!IsLastBackward(b.segment)) return;
      live_ += s.input - s.output - s.saved;
      if (Follows(b.tp_group) && unit > 0 && !Held(unit - 1)) live_ -= s.input;
    });
  }
  // What was saved and the gradient of the output stay for the second part.
  void Walk(const BackwardInput& b) {
    ForCells(b, true, [&](int32_t unit, int32_t microbatch) {
      const Sizes s = SizesOf(unit, microbatch);
      Touch(s.input + s.workspace);
      if (!IsLastBackward(b.segment)) return;
      live_ += s.input;
      if (Follows(b.tp_group) && unit > 0 && !Held(unit - 1)) live_ -= s.input;
    });
  }
  void Walk(const BackwardWeight& b) {
    ForCells(b, true, [&](int32_t unit, int32_t microbatch) {
      const Sizes s = SizesOf(unit, microbatch);
      Touch(s.workspace);
      if (IsLastBackward(b.segment)) live_ -= s.output + s.saved;
    });
  }
  static bool IsSecond(UnitSegment segment) { return segment == UnitSegment::kMlp || segment == UnitSegment::kLoss; }
  static bool IsLastBackward(UnitSegment segment) { return !IsSecond(segment); }

  // What a border's other side makes or needs lives here from its receipt, or until it is sent.
  template <typename Op>
  int64_t HandedOver(const Op& op) const {
    return costs_.BoundaryBytes(static_cast<double>(op.samples));
  }
  void Received(int64_t bytes) {
    live_ += bytes;
    Touch(0);
  }
  void Walk(const SendActivation& op) { live_ -= HandedOver(op); }
  void Walk(const SendGradient& op) { live_ -= HandedOver(op); }
  void Walk(const ReceiveActivation& op) { Received(HandedOver(op)); }
  void Walk(const ReceiveGradient& op) { Received(HandedOver(op)); }
  void Walk(const BroadcastActivation& op) {
    if (op.root != program_.rank) Received(costs_.BoundaryBytes(SamplesOf(op.microbatch)));
  }
  // The sum stands where its term was; where another rank sends it, this one has no more use for it.
  void Walk(const AllReduceActivation& op) {
    const bool output = op.of == Exchanged::kActivation && op.segment != UnitSegment::kAttention && !Held(op.unit + 1);
    const bool gradient = op.of == Exchanged::kGradient && op.segment != UnitSegment::kMlp && !Held(op.unit - 1);
    if (Follows(op.group) && (output || gradient)) live_ -= costs_.BoundaryBytes(SamplesOf(op.microbatch));
  }

  // A unit's input, as copies move it.
  template <typename Op>
  int64_t InputsOf(const Op& op) {
    int64_t bytes = 0;
    ForCells(op, false, [&](int32_t, int32_t microbatch) { bytes += costs_.BoundaryBytes(SamplesOf(microbatch)); });
    return bytes;
  }
  void Walk(const OffloadActivation& op) { live_ -= InputsOf(op); }
  void Walk(const PrefetchActivation& op) { Received(InputsOf(op)); }

  // These work in buffers that the program declares and in the owned shard, which the memory model counts apart.
  void Walk(const Gather&) {}
  void Walk(const Broadcast&) {}
  void Walk(const Release&) {}
  void Walk(const ZeroGrad&) {}
  void Walk(const ReduceScatter&) {}
  void Walk(const AllReduce&) {}
  void Walk(const PrefetchState&) {}
  void Walk(const OffloadState&) {}
  void Walk(const ReduceScalars&) {}
  void Walk(const OptimizerStep&) {}

  const Costs& costs_;
  const int kind_;
  const Program& program_;
  const double tp_share_;
  std::vector<bool> held_;  // by unit
  int64_t live_ = 0, peak_ = 0;
};

}  // namespace

UnitKind UnitKindOf(const Program& program, int32_t unit) {
  if (unit == 0) return UnitKind::kEmbedding;
  return unit == program.num_units - 1 ? UnitKind::kHead : UnitKind::kLayer;
}

OpSet OperatorSet(uint32_t operators) {
  if (operators == 0) return OpSet::All();
  OpSet set;
  for (int op = 0; op < kNumOps; ++op) {
    if (operators >> op & 1) set = set.With(static_cast<Op>(op));
  }
  return set;
}

int64_t ActivationPeakBytes(const Costs& costs, int kind, const Program& program, double tp_share) {
  return Ledger(costs, kind, program, tp_share).Peak();
}

}  // namespace motley::planner
