// A unit's flat array seen as its named tensors. Views: what is written through them lands in the flat array.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "common/model/model.h"
#include "common/model/parameters.h"

namespace motley::engine {

class UnitView {
 public:
  // Both must outlive the view. `flat` has at least spec.num_elements elements.
  UnitView(const UnitSpec& spec, const at::Tensor& flat);

  // The tensor whose name is `suffix` or ends in ".suffix".
  at::Tensor Get(std::string_view suffix) const;
  // Tensors [first .. last], which lie one after the other and have equal rows, as one matrix.
  at::Tensor Stacked(std::string_view first, std::string_view last) const;

 private:
  const TensorSpec& Find(std::string_view suffix) const;

  const UnitSpec& spec_;
  const at::Tensor& flat_;
};

// A layer's tensors under one name for both families. Biases are undefined for Llama. qkv holds q, k and v in one product,
// up holds gate and up.
struct LayerTensors {
  at::Tensor norm1, norm1_bias, qkv, qkv_bias, out, out_bias, norm2, norm2_bias, up, up_bias, down, down_bias;
};
LayerTensors LayerView(ModelFamily family, const UnitSpec& spec, const at::Tensor& flat);

struct EmbeddingTensors {
  at::Tensor tokens, positions;  // positions undefined for Llama
};
EmbeddingTensors EmbeddingView(ModelFamily family, const UnitSpec& spec, const at::Tensor& flat);

struct HeadTensors {
  at::Tensor norm, norm_bias, projection;  // projection [vocab, hidden]
};
// Tied: the projection is the embedding's token table, in `embedding_flat`.
HeadTensors HeadView(const ModelShape& shape, const UnitSpec& head, const at::Tensor& head_flat, const UnitSpec& embedding,
                     const at::Tensor& embedding_flat);

}  // namespace motley::engine
