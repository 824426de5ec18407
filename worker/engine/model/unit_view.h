// A unit's flat array seen as its named tensors. Views: what is written through them lands in the flat array.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string_view>

#include "common/model/model.h"
#include "common/model/parameters.h"

namespace motley::engine {

class UnitView {
 public:
  // Both must outlive the view. `flat` has at least spec.num_elements elements.
  UnitView(const UnitSpec& spec, const at::Tensor& flat);

  // Names are those of TensorNames, without the layer's prefix.
  at::Tensor Weight(std::string_view name) const { return Stacked({&name, 1}, kWeightSuffix); }
  at::Tensor Bias(std::string_view name) const { return Stacked({&name, 1}, kBiasSuffix); }
  // The weights of one product as one matrix, and its biases as one vector: the layout has them one after the other.
  at::Tensor Weight(std::span<const std::string_view> names) const { return Stacked(names, kWeightSuffix); }
  at::Tensor Bias(std::span<const std::string_view> names) const { return Stacked(names, kBiasSuffix); }

 private:
  at::Tensor Stacked(std::span<const std::string_view> names, std::string_view suffix) const;
  const TensorSpec& Find(std::string_view name, std::string_view suffix) const;

  const UnitSpec& spec_;
  const at::Tensor& flat_;
};

// A layer's tensors under one name for all families. Biases that a family does not have are undefined. qkv holds q, k and v in
// one product, up holds gate and up.
struct LayerTensors {
  at::Tensor norm1, norm1_bias, qkv, qkv_bias, out, out_bias, norm2, norm2_bias, up, up_bias, down, down_bias;
  at::Tensor head_norm;         // of queries, then of keys; undefined where heads have no norms
  at::Tensor behind1, behind2;  // undefined unless norms come before and behind
};
LayerTensors LayerView(const FamilyTraits& traits, const UnitSpec& spec, const at::Tensor& flat);

struct EmbeddingTensors {
  at::Tensor tokens, positions;  // positions: undefined unless learned
};
EmbeddingTensors EmbeddingView(const FamilyTraits& traits, const UnitSpec& spec, const at::Tensor& flat);

struct HeadTensors {
  at::Tensor norm, norm_bias, projection;  // projection [vocab, hidden]
};
// Tied: without the projection, which is the embedding's token table.
HeadTensors HeadView(const ModelShape& shape, const UnitSpec& spec, const at::Tensor& flat);

}  // namespace motley::engine
