#include "worker/engine/model/unit_view.h"

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

UnitView::UnitView(const UnitSpec& spec, const at::Tensor& flat) : spec_(spec), flat_(flat) {
  TORCH_CHECK(flat.defined() && flat.dim() == 1 && flat.numel() >= spec.num_elements, "a unit of ", spec.num_elements,
              " elements needs a flat array at least as long");
}

at::Tensor UnitView::Stacked(std::span<const std::string_view> names, std::string_view suffix) const {
  const TensorSpec& first = Find(names.front(), suffix);
  const TensorSpec& last = Find(names.back(), suffix);
  const int64_t elements = last.offset_elements + last.num_elements - first.offset_elements;
  const at::Tensor all = flat_.narrow(0, first.offset_elements, elements);
  return first.shape.size() == 1 ? all : all.view({-1, first.shape.back()});
}

const TensorSpec& UnitView::Find(std::string_view name, std::string_view suffix) const {
  for (const TensorSpec& tensor : spec_.tensors) {
    std::string_view known = tensor.name;
    if (!known.ends_with(suffix)) continue;
    known.remove_suffix(suffix.size());
    if (!known.ends_with(name)) continue;
    if (known.size() == name.size() || known[known.size() - name.size() - 1] == '.') return tensor;
  }
  TORCH_CHECK(false, "the unit has no tensor '", name, suffix, "'");
}

LayerTensors LayerView(const FamilyTraits& traits, const UnitSpec& spec, const at::Tensor& flat) {
  const UnitView view(spec, flat);
  const TensorNames& names = traits.names;
  LayerTensors t;
  t.norm1 = view.Weight(names.norm1);
  t.qkv = view.Weight(names.qkv);
  t.out = view.Weight(names.out);
  t.norm2 = view.Weight(names.norm2);
  t.up = view.Weight(names.up);
  t.down = view.Weight(names.down);
  if (!names.head_norm.empty()) t.head_norm = view.Weight(names.head_norm);
  if (!names.behind1.empty()) t.behind1 = view.Weight(names.behind1), t.behind2 = view.Weight(names.behind2);
  if (traits.biases.norm) t.norm1_bias = view.Bias(names.norm1), t.norm2_bias = view.Bias(names.norm2);
  if (traits.biases.qkv) t.qkv_bias = view.Bias(names.qkv);
  if (traits.biases.out) t.out_bias = view.Bias(names.out);
  if (traits.biases.mlp) t.up_bias = view.Bias(names.up), t.down_bias = view.Bias(names.down);
  return t;
}

EmbeddingTensors EmbeddingView(const FamilyTraits& traits, const UnitSpec& spec, const at::Tensor& flat) {
  const UnitView view(spec, flat);
  EmbeddingTensors t;
  t.tokens = view.Weight(traits.names.tokens);
  if (!traits.names.positions.empty()) t.positions = view.Weight(traits.names.positions);
  return t;
}

HeadTensors HeadView(const ModelShape& shape, const UnitSpec& spec, const at::Tensor& flat) {
  const FamilyTraits& traits = TraitsOf(shape.family);
  const UnitView view(spec, flat);
  HeadTensors t;
  t.norm = view.Weight(traits.names.final_norm);
  if (traits.biases.norm) t.norm_bias = view.Bias(traits.names.final_norm);
  if (!shape.tie_embeddings) t.projection = view.Weight(kHeadName);
  return t;
}

}  // namespace motley::engine
