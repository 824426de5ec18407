#include "planner/live/memory_ledger.h"

#include <algorithm>

namespace motley::planner {
namespace {

UnitKind KindOf(const Program& program, int32_t unit) {
  if (unit == 0) return UnitKind::kEmbedding;
  return unit == program.num_units - 1 ? UnitKind::kHead : UnitKind::kLayer;
}

// Walks the compute lane. Between units lives one activation (forward) or its gradient (backward) per microbatch.
class Ledger {
 public:
  Ledger(const CostModel& cost, int rank, const Program& program) : cost_(cost), rank_(rank), program_(program) {}

  int64_t Peak() {
    for (const Instruction& instruction : program_.instructions) {
      if (const auto* f = std::get_if<Forward>(&instruction.op)) Walk(*f);
      if (const auto* r = std::get_if<Recompute>(&instruction.op)) Walk(*r);
      if (const auto* b = std::get_if<Backward>(&instruction.op)) Walk(*b);
    }
    return peak_;
  }

 private:
  struct Sizes {
    int64_t input, output, saved, workspace;
  };
  // The embedding's input are tokens, counted with what it saves; the head's output is a number.
  Sizes SizesOf(int32_t unit, int32_t microbatch) const {
    const int64_t m = program_.microbatches[static_cast<size_t>(microbatch)];
    const UnitKind kind = KindOf(program_, unit);
    const int64_t boundary = cost_.BoundaryBytes(m);
    return {kind == UnitKind::kEmbedding ? 0 : boundary, kind == UnitKind::kHead ? 0 : boundary, cost_.SavedBytes(rank_, kind, m),
            cost_.WorkspaceBytes(rank_, kind, m)};
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

  const CostModel& cost_;
  const int rank_;
  const Program& program_;
  int64_t live_ = 0, peak_ = 0;
};

}  // namespace

int64_t FixedBytes(const CostModel& cost, int rank, const Program& program) {
  int64_t elements = 0;
  for (const int64_t e : program.parameter_buffers) elements += e;
  for (const int64_t e : program.gradient_buffers) elements += e;
  return cost.ContextBytes(rank) + elements * cost.element_bytes();
}

int64_t StateBytes(const CostModel& cost, int64_t owned_elements) {
  return kStateTensors * cost.element_bytes() * owned_elements;
}

int64_t ActivationPeakBytes(const CostModel& cost, int rank, const Program& program) {
  return Ledger(cost, rank, program).Peak();
}

std::vector<MemoryTerm> LayeredMemoryTerms(const CostModel& cost, int rank, bool recompute, int64_t largest_microbatch) {
  const int64_t layers = cost.model().num_layers;
  const size_t size = static_cast<size_t>(largest_microbatch) + 1;
  MemoryTerm head{std::vector<int64_t>(size), std::vector<int64_t>(size)};
  MemoryTerm layer = head, embedding = head;
  for (int64_t m = 1; m <= largest_microbatch; ++m) {
    const size_t i = static_cast<size_t>(m);
    const int64_t boundary = cost.BoundaryBytes(m);
    const int64_t saved_embedding = cost.SavedBytes(rank, UnitKind::kEmbedding, m);
    const int64_t saved_layer = cost.SavedBytes(rank, UnitKind::kLayer, m);
    const int64_t kept = saved_embedding + layers * (recompute ? boundary : saved_layer);
    head.each[i] = kept + cost.SavedBytes(rank, UnitKind::kHead, m);
    head.once[i] = boundary + cost.WorkspaceBytes(rank, UnitKind::kHead, m);
    layer.each[i] = kept + boundary;
    layer.once[i] = boundary + cost.WorkspaceBytes(rank, UnitKind::kLayer, m) + (recompute ? saved_layer - boundary : 0);
    embedding.each[i] = saved_embedding + boundary;
    embedding.once[i] = cost.WorkspaceBytes(rank, UnitKind::kEmbedding, m);
  }
  return {std::move(head), std::move(layer), std::move(embedding)};
}

}  // namespace motley::planner
