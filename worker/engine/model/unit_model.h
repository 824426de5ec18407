// Forward and backward of the model's units with explicit operators (no taped graph): arithmetic by ATen, order and
// memory by us. Not thread-safe; used from the compute lane. May throw c10::Error (out of memory included): the executor turns
// it into a Status at one boundary.
//
// Flat arrays: `params` and `grads` are in the unit's layout (common/model/parameters.h), or longer and begin with it (a buffer
// for the largest unit). Of a slice they have its layout, and everything that a unit or segment makes is a term: the group's
// ranks' add up to what the unit makes (docs/inside/operators.md, "Tensor parallelism"). Backward functions ADD to `grads`, which
// are float32 where the model computes in a half type. Activations are [samples, seq_len, hidden].
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "common/base/dtype.h"
#include "common/model/model.h"
#include "common/model/model_slice.h"
#include "common/model/op_set.h"
#include "common/model/operators.h"
#include "common/model/parameters.h"
#include "common/program/operation_traits.h"
#include "worker/engine/model/layer_frame.h"
#include "worker/engine/model/layer_walk.h"
#include "worker/engine/model/unit_array.h"
#include "worker/engine/operators/borders.h"
#include "worker/engine/operators/rotary.h"

namespace motley::engine {

// What a pass over a unit left for the next one of the same microbatch; empty when nothing was asked for.
struct Saved {
  std::vector<at::Tensor> tensors;    // of the forward; a layer's by LayerValue
  std::vector<at::Tensor> gradients;  // the same of a backward by input, for the weights
  LayerKind kind;                     // of a layer: said before its forward, the same for all that follows
  int64_t Bytes() const;
};

// What the head's backward makes.
struct HeadGradient {
  at::Tensor input;  // of scale * sum
  at::Tensor loss;   // the sum behind HeadKeep; undefined where HeadLoss has said it
};

// What the layers are told of a microbatch whose samples have borders; null: each sample is one document.
struct Documents {
  const Borders* borders = nullptr;
  std::vector<RotaryTables> rotary;  // by position of the samples, of each base that layers have
};

class UnitModel {
 public:
  // `shape`: of the whole model. `device`: where the tensors that it is given live; `kernels`: its own, where it has some, which
  // must outlive the model.
  UnitModel(const ModelShape& shape, int64_t seq_len, DType dtype, c10::Device device = c10::kCPU,
            const ModelSlice& slice = ModelSlice(), const KernelLauncher* kernels = nullptr);

  // Of the slice.
  const ModelShape& shape() const { return shape_; }
  bool whole() const { return slice_.whole(); }
  int64_t vocab_size() const { return vocab_size_; }  // of the whole model: of tokens

  // Once a microbatch: gathers the tables of positions. `borders` must outlive what is made.
  Documents DocumentsOf(const Borders& borders) const;

  // tokens: [samples, seq_len] int64, of the whole vocabulary.
  at::Tensor EmbeddingForward(const UnitArray& params, const at::Tensor& tokens, const Borders* borders = nullptr);
  void EmbeddingBackward(const at::Tensor& tokens, const at::Tensor& grad_output, const UnitArray& grads,
                         const Borders* borders = nullptr);

  // `saved` null: keep nothing. Else what the operators of `recomputed` do not make, the input at least. Same layer weights for
  // every layer index; the caller passes that layer's params.
  at::Tensor LayerForward(const UnitArray& params, const at::Tensor& input, Saved* saved, OpSet recomputed = OpSet::None(),
                          const Documents* documents = nullptr);
  // One segment of it, or all; `kept`: values that stay. Between the segments `saved` has what the second one needs, and the
  // tensor that the first one returned is the value in it: whoever sums it in place sums the value that stays. The second
  // segment takes no input. `mark`, here and of the backward: taken by who marks in passing what is not finite.
  at::Tensor LayerForward(UnitSegment segment, const UnitArray& params, const at::Tensor& input, Saved& saved, ValueSet kept,
                          const Documents* documents = nullptr, FiniteMark* mark = nullptr);
  // What stays where these operators are recomputed.
  ValueSet KeptFor(OpSet recomputed) const;
  // Makes what a forward of the same `recomputed` did not keep.
  void LayerRecompute(const UnitArray& params, Saved& saved, OpSet recomputed, const Documents* documents = nullptr);
  // Frees `saved` as it goes, and leaves it empty. Returns the gradient of the input. Of a segment `grad_output` is that of what
  // the segment makes, and what is returned is a term of that of what it reads.
  at::Tensor LayerBackward(const UnitArray& params, Saved& saved, const at::Tensor& grad_output, const UnitArray& grads,
                           UnitSegment segment = UnitSegment::kWhole, const Documents* documents = nullptr,
                           FiniteMark* mark = nullptr);
  // Its two halves. The first leaves in `saved` what the second needs, `grad_output` among it.
  at::Tensor LayerBackwardInput(const UnitArray& params, Saved& saved, const at::Tensor& grad_output,
                                UnitSegment segment = UnitSegment::kWhole, const Documents* documents = nullptr,
                                FiniteMark* mark = nullptr);
  void LayerBackwardWeight(Saved& saved, const UnitArray& grads, UnitSegment segment = UnitSegment::kWhole);

  // The kernel's name that layers' attention runs on with so many samples at once (attention.h).
  std::string NameOfAttention(int64_t samples, const at::TensorOptions& where) const;

  // Sum (not mean) of the cross entropy over the trained tokens: a float64 scalar, left on the device. `trained`: their places
  // among samples * seq_len, ascending, int64; undefined: all. The others have no logits. `embedding_params` is used when tied
  // (else undefined). The projection runs over chunks of kHeadChunkTokens rows and keeps no logits. Of the whole vocabulary, and
  // of an evaluation: what trains takes HeadKeep, and its backward makes the loss.
  at::Tensor HeadForward(const UnitArray& params, const UnitArray& embedding_params, const at::Tensor& input,
                         const at::Tensor& targets, const at::Tensor& trained = {});
  // All that a training forward of a whole head does.
  static void HeadKeep(const at::Tensor& input, Saved& saved);
  // Forward in two segments, of any slice. What the loss must know of the slice's logits: [2, tokens], for each token the
  // logarithm of the sum of exponentials, and the target's logit, 0 where another slice has it. Zeros where it is not trained.
  at::Tensor HeadLogits(const UnitArray& params, const UnitArray& embedding_params, const at::Tensor& input,
                        const at::Tensor& targets, Keep keep, Saved& saved, const at::Tensor& trained = {});
  // `rows`: of all slices one after the other, in their order. The sum, the same for each of them.
  at::Tensor HeadLoss(const at::Tensor& rows, Keep keep, Saved& saved, const at::Tensor& trained = {});
  // What HeadLogits with Keep::kBoundary did not keep.
  void HeadRecompute(const UnitArray& params, const UnitArray& embedding_params, Saved& saved);
  // Adds to `grads`, and to `embedding_grads` when tied. `rows_at_once`: of logits, of a whole head.
  HeadGradient HeadBackward(const UnitArray& params, const UnitArray& embedding_params, Saved& saved, const at::Tensor& targets,
                            double scale, const UnitArray& grads, const UnitArray& embedding_grads,
                            const at::Tensor& trained = {}, int64_t rows_at_once = kHeadChunkTokens);

 private:
  // Their tensors, without those that another rank adds.
  const EmbeddingTensors& EmbeddingOf(const UnitArray& array) const;
  const LayerTensors& LayerOf(const UnitArray& array) const;
  HeadTensors HeadOf(const UnitArray& array, const UnitArray& embedding) const;
  LayerFrame FrameOf(const LayerKind& kind, int64_t samples, int64_t seq_len, const Documents* documents) const;
  // Its tables among `of_bases`; none where it has no rotary positions.
  const RotaryTables& TablesOf(const LayerKind& kind, const std::vector<RotaryTables>& of_bases) const;
  const LayerWalk& WalkOf(LayerKind kind) const { return kind.rotary ? walk_ : walk_without_rotary_; }
  // Takes what was saved.
  LayerFrame BackwardFrame(const UnitArray& params, Saved& saved, const at::Tensor& grad_output, UnitSegment segment,
                           const Documents* documents) const;

  const ModelSlice slice_;
  const ModelShape shape_;               // of the slice
  const int64_t vocab_size_;             // of the whole model
  const int64_t first_token_;            // of the slice's part of the vocabulary
  const FamilyTraits* traits_;           // of its family, static
  const KernelLauncher* const kernels_;  // null: none
  int64_t seq_len_;
  DType dtype_;
  std::vector<UnitSpec> layout_;
  const LayerWalk walk_, walk_without_rotary_;
  std::vector<double> bases_;         // of rotary positions: the model's, then those that some layers have of their own
  std::vector<RotaryTables> rotary_;  // of each; none where positions are not rotary
  double embedding_scale_ = 1;
};

// Initial values of elements [begin, end) of a unit: keyed by (seed, tensor name, HuggingFace's element), never by rank or place,
// so any range agrees with the whole. Drawn in float64 and rounded to out's dtype.
// out: one-dimensional, end - begin elements. threads: at least 1.
void InitializeRange(const UnitSpec& unit, int64_t seed, int64_t begin, int64_t end, at::Tensor& out, int threads);

}  // namespace motley::engine
