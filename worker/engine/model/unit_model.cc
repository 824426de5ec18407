#include "worker/engine/model/unit_model.h"

#include "worker/engine/base/scalar_type.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/base/vector_math.h"
#include "worker/engine/model/unit_view.h"
#include "worker/engine/operators/embedding.h"

namespace motley::engine {

int64_t Saved::Bytes() const {
  int64_t bytes = 0;
  for (const auto* kept : {&tensors, &gradients}) {
    for (const at::Tensor& tensor : *kept) bytes += tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
  }
  return bytes;
}

UnitModel::UnitModel(const ModelShape& shape, int64_t seq_len, DType dtype, c10::Device device, const ModelSlice& slice)
    : slice_(slice),
      shape_(ShapeOf(shape, slice)),
      vocab_size_(shape.vocab_size),
      first_token_(FirstToken(shape, slice)),
      traits_(&TraitsOf(shape.family)),
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
      rotary_ = MakeRotaryTables(seq_len, shape.head_dim, shape.rope_theta, ScalarTypeOf(dtype), shape.rope_scaling);
      rotary_ = {rotary_.cos.to(device), rotary_.sin.to(device)};
      break;
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
  if (!rotary_.cos.defined() || AreSamples(&borders)) return {&borders, rotary_};
  return {&borders, TablesAt(rotary_, borders.positions, static_cast<int64_t>(borders.lengths.size()))};
}

at::Tensor UnitModel::EmbeddingForward(const UnitArray& params, const at::Tensor& tokens, const Borders* borders) {
  const EmbeddingTensors& tables = EmbeddingOf(params);
  if (whole()) return EmbedForward(tokens, tables.tokens, tables.positions, borders);
  return EmbedPartForward(tokens, tables.tokens, tables.positions, first_token_, borders);
}

void UnitModel::EmbeddingBackward(const at::Tensor& tokens, const at::Tensor& grad_output, const UnitArray& grads,
                                  const Borders* borders) {
  EmbeddingTensors tables = EmbeddingOf(grads);
  if (whole()) return EmbedBackward(tokens, grad_output, tables.tokens, tables.positions, borders);
  EmbedPartBackward(tokens, grad_output, tables.tokens, tables.positions, first_token_, borders);
}

}  // namespace motley::engine
