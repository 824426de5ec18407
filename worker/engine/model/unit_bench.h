// One unit of the model with made-up weights and inputs, to be run forward and backward while time and bytes are read. Each
// method does what the executor does for one instruction (executor_units.cc), below autograd as there. Not thread-safe. May throw
// c10::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "common/job/job.h"
#include "common/program/operation_traits.h"
#include "common/session/assignment.h"
#include "worker/engine/model/unit_array.h"
#include "worker/engine/model/unit_model.h"
#include "worker/engine/operators/finite_check.h"

namespace motley::engine {

// Whole samples that all count, or rows of two documents of which half does.
enum class SamplesKind { kWhole, kRows };

class UnitBench {
 public:
  // `model` must outlive the bench; `shape` is that of its slice.
  UnitBench(UnitModel& model, const ModelShape& shape, int64_t seq_len, Precision precision, c10::Device device, UnitKind kind);

  // Makes the inputs for `samples` sequences; of a layer that is such a one.
  void Prepare(int64_t samples, SamplesKind kind = SamplesKind::kWhole, LayerKind layer = LayerKind());
  // Of a whole head's backward; kHeadChunkTokens if it was not said.
  void set_rows_at_once(int64_t rows) { rows_at_once_ = rows; }
  // Segments in the order of a program's; a head has none backward.
  void Forward(UnitSegment segment = UnitSegment::kWhole);
  // A whole head's forward that makes the loss: a step's leaves it to the backward.
  void Evaluate();
  void Backward(UnitSegment segment = UnitSegment::kWhole);
  // The same in two.
  void BackwardInput();
  void BackwardWeight();
  // Drops inputs, outputs and saved tensors.
  void Clear();

  int64_t input_bytes() const;   // what a rank holds for the microbatch besides saved tensors: its input, or tokens and targets
  int64_t output_bytes() const;  // of the last Forward
  int64_t input_grad_bytes() const;  // of the last Backward

 private:
  at::Tensor Uniform(at::IntArrayRef shape, double bound) const;
  const Borders* borders() const { return borders_ ? &*borders_ : nullptr; }
  const Documents* documents() const { return documents_ ? &*documents_ : nullptr; }
  void ForwardHead(UnitSegment segment);
  void BackwardOfHead(const UnitArray& sum, const UnitArray& tied_sum);
  void NoteFinite(const at::Tensor& made);

  UnitModel& model_;
  const ModelShape shape_;
  const int64_t seq_len_;
  const UnitKind kind_;
  const at::TensorOptions options_;
  UnitArray params_, grads_, embedding_params_, embedding_grads_;
  at::Tensor tokens_, targets_, trained_, input_, output_, grad_output_, grad_input_;
  std::optional<Borders> borders_;           // of rows
  std::optional<Documents> documents_;       // of a layer
  int64_t rows_at_once_ = kHeadChunkTokens;  // of logits
  at::Tensor head_rows_;                     // between a head's segments
  UnitArray head_sum_, tied_sum_;            // between its halves
  FiniteCheck finite_;                       // nobody reads it
  Saved saved_;
};

}  // namespace motley::engine
