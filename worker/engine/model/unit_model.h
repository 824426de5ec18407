// Forward and backward of the model's units with explicit operators (no taped graph): arithmetic by ATen, order and
// memory by us. Not thread-safe; used from the compute lane. May throw c10::Error (out of memory included): the executor turns
// it into a Status at one boundary.
//
// Flat arrays: `params` and `grads` are one-dimensional tensors of the unit's canonical layout (common/model/parameters.h), or
// longer ones that begin with it (a buffer for the largest unit).
// Backward functions ADD to `grads`, which are float32 where the model computes in a half type. Activations are
// [samples, seq_len, hidden].
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "common/base/dtype.h"
#include "common/model/model.h"
#include "common/model/parameters.h"
#include "worker/engine/operators/rotary.h"

namespace motley::engine {

// What a forward kept for its backward; empty when nothing was asked for.
struct Saved {
  std::vector<at::Tensor> tensors;
  int64_t Bytes() const;
};

class UnitModel {
 public:
  // `device`: where the tensors that it is given live.
  UnitModel(const ModelShape& shape, int64_t seq_len, DType dtype, c10::Device device = c10::kCPU);

  // tokens: [samples, seq_len] int64.
  at::Tensor EmbeddingForward(const at::Tensor& params, const at::Tensor& tokens);
  void EmbeddingBackward(const at::Tensor& tokens, const at::Tensor& grad_output, at::Tensor& grads);

  // `saved` null: keep nothing. Same layer weights for every layer index; the caller passes that layer's params.
  at::Tensor LayerForward(const at::Tensor& params, const at::Tensor& input, Saved* saved);
  // Frees `saved` as it goes, and leaves it empty. Returns the gradient of the input.
  at::Tensor LayerBackward(const at::Tensor& params, Saved& saved, const at::Tensor& grad_output, at::Tensor& grads);

  // Sum (not mean) of the cross entropy over all tokens: a float64 scalar, left on the device. `embedding_params` is used when
  // tied (else undefined). The projection runs over chunks of kHeadChunkTokens rows and keeps no logits; backward computes them
  // again.
  at::Tensor HeadForward(const at::Tensor& params, const at::Tensor& embedding_params, const at::Tensor& input,
                         const at::Tensor& targets, Saved* saved);
  // Gradient of scale * sum. Adds to `grads`, and to `embedding_grads` when tied.
  at::Tensor HeadBackward(const at::Tensor& params, const at::Tensor& embedding_params, Saved& saved, const at::Tensor& targets,
                          double scale, at::Tensor& grads, at::Tensor& embedding_grads);

 private:
  ModelShape shape_;
  const FamilyTraits* traits_;  // of its family, static
  int64_t seq_len_;
  DType dtype_;
  std::vector<UnitSpec> layout_;
  RotaryTables rotary_;  // defined where positions are rotary
};

// Initial values of elements [begin, end) of a unit: keyed by (seed, tensor name, element), never by rank, so any range agrees
// with the whole. Drawn in float64 and rounded to out's dtype.
// out: one-dimensional, end - begin elements.
void InitializeRange(const UnitSpec& unit, int64_t seed, int64_t begin, int64_t end, at::Tensor& out);

}  // namespace motley::engine
