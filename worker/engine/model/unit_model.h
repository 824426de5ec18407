// Forward and backward of the model's units with explicit operators (no taped graph): arithmetic by ATen, order and
// memory by us. Not thread-safe; used from the compute lane. May throw c10::Error (out of memory included): the executor turns
// it into a Status at one boundary.
//
// Flat arrays: `params` and `grads` are one-dimensional tensors in the unit's layout (common/model/parameters.h), or
// longer ones that begin with it (a buffer for the largest unit).
// Backward functions ADD to `grads`, which are float32 where the model computes in a half type. Activations are
// [samples, seq_len, hidden].
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "common/base/dtype.h"
#include "common/model/model.h"
#include "common/model/op_set.h"
#include "common/model/parameters.h"
#include "worker/engine/model/layer_frame.h"
#include "worker/engine/model/layer_walk.h"
#include "worker/engine/operators/rotary.h"

namespace motley::engine {

// What a pass over a unit left for the next one of the same microbatch; empty when nothing was asked for.
struct Saved {
  std::vector<at::Tensor> tensors;    // of the forward; a layer's by LayerValue
  std::vector<at::Tensor> gradients;  // the same of a backward by input, for the weights
  int64_t Bytes() const;
};

class UnitModel {
 public:
  // `device`: where the tensors that it is given live.
  UnitModel(const ModelShape& shape, int64_t seq_len, DType dtype, c10::Device device = c10::kCPU);

  // tokens: [samples, seq_len] int64.
  at::Tensor EmbeddingForward(const at::Tensor& params, const at::Tensor& tokens);
  void EmbeddingBackward(const at::Tensor& tokens, const at::Tensor& grad_output, at::Tensor& grads);

  // `saved` null: keep nothing. Else what the operators of `recomputed` do not make, the input at least. Same layer weights for
  // every layer index; the caller passes that layer's params.
  at::Tensor LayerForward(const at::Tensor& params, const at::Tensor& input, Saved* saved, OpSet recomputed = OpSet::None());
  // Makes what a forward of the same `recomputed` did not keep.
  void LayerRecompute(const at::Tensor& params, Saved& saved, OpSet recomputed);
  // Frees `saved` as it goes, and leaves it empty. Returns the gradient of the input.
  at::Tensor LayerBackward(const at::Tensor& params, Saved& saved, const at::Tensor& grad_output, at::Tensor& grads);
  // Its two halves. The first leaves in `saved` what the second needs, `grad_output` among it.
  at::Tensor LayerBackwardInput(const at::Tensor& params, Saved& saved, const at::Tensor& grad_output);
  void LayerBackwardWeight(Saved& saved, at::Tensor& grads);

  // Sum (not mean) of the cross entropy over all tokens: a float64 scalar, left on the device. `embedding_params` is used when
  // tied (else undefined). The projection runs over chunks of kHeadChunkTokens rows and keeps no logits; backward computes them
  // again.
  at::Tensor HeadForward(const at::Tensor& params, const at::Tensor& embedding_params, const at::Tensor& input,
                         const at::Tensor& targets, Saved* saved);
  // Gradient of scale * sum. Adds to `grads`, and to `embedding_grads` when tied.
  at::Tensor HeadBackward(const at::Tensor& params, const at::Tensor& embedding_params, Saved& saved, const at::Tensor& targets,
                          double scale, at::Tensor& grads, at::Tensor& embedding_grads);

 private:
  LayerFrame FrameOf(int64_t samples, int64_t seq_len) const;
  // Takes what was saved.
  LayerFrame BackwardFrame(const at::Tensor& params, Saved& saved, const at::Tensor& grad_output) const;

  ModelShape shape_;
  const FamilyTraits* traits_;  // of its family, static
  int64_t seq_len_;
  DType dtype_;
  std::vector<UnitSpec> layout_;
  const LayerWalk walk_;
  RotaryTables rotary_;  // defined where positions are rotary
};

// Initial values of elements [begin, end) of a unit: keyed by (seed, tensor name, HuggingFace's element), never by rank or place,
// so any range agrees with the whole. Drawn in float64 and rounded to out's dtype.
// out: one-dimensional, end - begin elements.
void InitializeRange(const UnitSpec& unit, int64_t seed, int64_t begin, int64_t end, at::Tensor& out);

}  // namespace motley::engine
