#include "worker/engine/model/unit_model.h"

#include <algorithm>
#include <cmath>

#include "worker/engine/base/scalar_type.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/base/vector_math.h"
#include "worker/engine/model/unit_view.h"
#include "worker/engine/operators/embedding.h"

namespace motley::engine {
namespace {

// Of rotary positions: the model's, then each that some layers have of their own.
std::vector<double> BasesOf(const ModelShape& shape) {
  std::vector<double> bases = {shape.rope_theta};
  for (const LayerKind& kind : shape.layer_kinds) {
    if (kind.rope_theta != 0 && std::find(bases.begin() + 1, bases.end(), kind.rope_theta) == bases.end()) {
      bases.push_back(kind.rope_theta);
    }
  }
  return bases;
}

}  // namespace

int64_t Saved::Bytes() const {
  int64_t bytes = 0;
  for (const auto* kept : {&tensors, &gradients}) {
    for (const at::Tensor& tensor : *kept) bytes += tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
  }
  return bytes;
}

UnitModel::UnitModel(const ModelShape& shape, int64_t seq_len, DType dtype, c10::Device device, const ModelSlice& slice,
                     const KernelLauncher* kernels)
    : slice_(slice),
      shape_(ShapeOf(shape, slice)),
      vocab_size_(shape.vocab_size),
      first_token_(FirstToken(shape, slice)),
      traits_(&TraitsOf(shape.family)),
      kernels_(kernels),
      seq_len_(seq_len),
      dtype_(dtype),
      layout_(ParameterLayout(shape_)),
      walk_(*traits_),
      walk_without_rotary_(*traits_, /*rotary=*/false) {
  ChooseVectorKernels();
  switch (traits_->positions) {
    case PositionKind::kLearned:
      break;  // a table of the embedding
    case PositionKind::kRotary:
      bases_ = BasesOf(shape);
      for (size_t i = 0; i < bases_.size(); ++i) {
        const RopeScaling scaling = i == 0 ? shape.rope_scaling : RopeScaling();
        const RotaryTables made = MakeRotaryTables(seq_len, shape.head_dim, bases_[i], ScalarTypeOf(dtype), scaling);
        rotary_.push_back({made.cos.to(device), made.sin.to(device)});
      }
      break;
  }
  if (traits_->scales_embedding) {  // by a number of its type, as transformers does
    embedding_scale_ = at::scalar_tensor(std::sqrt(static_cast<double>(shape.hidden_size)), ScalarTypeOf(dtype)).item<double>();
  }
}

const EmbeddingTensors& UnitModel::EmbeddingOf(const UnitArray& array) const {
  std::optional<EmbeddingTensors>& tables = array.views().embedding;
  if (!tables) {
    tables = EmbeddingView(*traits_, layout_.front(), array.flat());
    if (!slice_.leads()) tables->positions = at::Tensor();
  }
  return *tables;
}

Documents UnitModel::DocumentsOf(const Borders& borders) const {
  if (AreSamples(&borders)) return {&borders, rotary_};
  Documents documents = {&borders, {}};
  for (const RotaryTables& tables : rotary_) {
    documents.rotary.push_back(TablesAt(tables, borders.positions, static_cast<int64_t>(borders.lengths.size())));
  }
  return documents;
}

const RotaryTables& UnitModel::TablesOf(const LayerKind& kind, const std::vector<RotaryTables>& of_bases) const {
  static const RotaryTables kNone;
  if (of_bases.empty() || !kind.rotary) return kNone;
  const auto base = kind.rope_theta == 0 ? bases_.begin() : std::find(bases_.begin() + 1, bases_.end(), kind.rope_theta);
  TORCH_CHECK(base != bases_.end(), "no layer of the model has rotary positions with a base of ", kind.rope_theta);
  return of_bases[static_cast<size_t>(base - bases_.begin())];
}

at::Tensor UnitModel::EmbeddingForward(const UnitArray& params, const at::Tensor& tokens, const Borders* borders) {
  const EmbeddingTensors& tables = EmbeddingOf(params);
  at::Tensor output = whole() ? EmbedForward(tokens, tables.tokens, tables.positions, borders)
                              : EmbedPartForward(tokens, tables.tokens, tables.positions, first_token_, borders);
  return embedding_scale_ == 1 ? output : output.mul_(embedding_scale_);
}

void UnitModel::EmbeddingBackward(const at::Tensor& tokens, const at::Tensor& grad_output, const UnitArray& grads,
                                  const Borders* borders) {
  EmbeddingTensors tables = EmbeddingOf(grads);
  const at::Tensor grad = embedding_scale_ == 1 ? grad_output : at::mul(grad_output, embedding_scale_);
  if (whole()) return EmbedBackward(tokens, grad, tables.tokens, tables.positions, borders);
  EmbedPartBackward(tokens, grad, tables.tokens, tables.positions, first_token_, borders);
}

}  // namespace motley::engine
