#include "worker/engine/model/unit_view.h"

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

UnitView::UnitView(const UnitSpec& spec, const at::Tensor& flat) : spec_(spec), flat_(flat) {
  TORCH_CHECK(flat.defined() && flat.dim() == 1 && flat.numel() >= spec.num_elements, "a unit of ", spec.num_elements,
              " elements needs a flat array at least as long");
}

at::Tensor UnitView::Get(std::string_view suffix) const {
  const TensorSpec& tensor = Find(suffix);
  return flat_.narrow(0, tensor.offset_elements, tensor.num_elements).view(tensor.shape);
}

at::Tensor UnitView::Stacked(std::string_view first, std::string_view last) const {
  const TensorSpec& a = Find(first);
  const TensorSpec& b = Find(last);
  const int64_t elements = b.offset_elements + b.num_elements - a.offset_elements;
  return flat_.narrow(0, a.offset_elements, elements).view({-1, a.shape.back()});
}

const TensorSpec& UnitView::Find(std::string_view suffix) const {
  for (const TensorSpec& tensor : spec_.tensors) {
    const std::string_view name = tensor.name;
    if (!name.ends_with(suffix)) continue;
    if (name.size() == suffix.size() || name[name.size() - suffix.size() - 1] == '.') return tensor;
  }
  TORCH_CHECK(false, "the unit has no tensor '", suffix, "'");
}

LayerTensors LayerView(ModelFamily family, const UnitSpec& spec, const at::Tensor& flat) {
  const UnitView view(spec, flat);
  LayerTensors t;
  if (family == ModelFamily::kGpt2) {
    t.norm1 = view.Get("ln_1.weight");
    t.norm1_bias = view.Get("ln_1.bias");
    t.qkv = view.Get("attn.c_attn.weight");
    t.qkv_bias = view.Get("attn.c_attn.bias");
    t.out = view.Get("attn.c_proj.weight");
    t.out_bias = view.Get("attn.c_proj.bias");
    t.norm2 = view.Get("ln_2.weight");
    t.norm2_bias = view.Get("ln_2.bias");
    t.up = view.Get("mlp.c_fc.weight");
    t.up_bias = view.Get("mlp.c_fc.bias");
    t.down = view.Get("mlp.c_proj.weight");
    t.down_bias = view.Get("mlp.c_proj.bias");
    return t;
  }
  t.norm1 = view.Get("input_layernorm.weight");
  t.qkv = view.Stacked("self_attn.q_proj.weight", "self_attn.v_proj.weight");
  t.out = view.Get("self_attn.o_proj.weight");
  t.norm2 = view.Get("post_attention_layernorm.weight");
  t.up = view.Stacked("mlp.gate_proj.weight", "mlp.up_proj.weight");
  t.down = view.Get("mlp.down_proj.weight");
  return t;
}

EmbeddingTensors EmbeddingView(ModelFamily family, const UnitSpec& spec, const at::Tensor& flat) {
  const UnitView view(spec, flat);
  if (family == ModelFamily::kGpt2) return {view.Get("wte.weight"), view.Get("wpe.weight")};
  return {view.Get("embed_tokens.weight"), at::Tensor()};
}

HeadTensors HeadView(const ModelShape& shape, const UnitSpec& head, const at::Tensor& head_flat, const UnitSpec& embedding,
                     const at::Tensor& embedding_flat) {
  const UnitView view(head, head_flat);
  HeadTensors t;
  if (shape.family == ModelFamily::kGpt2) {
    t.norm = view.Get("ln_f.weight");
    t.norm_bias = view.Get("ln_f.bias");
  } else {
    t.norm = view.Get("model.norm.weight");
  }
  t.projection =
      shape.tie_embeddings ? EmbeddingView(shape.family, embedding, embedding_flat).tokens : view.Get("lm_head.weight");
  return t;
}

}  // namespace motley::engine
