#include "common/model/parameters.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

constexpr double kInitStd = 0.02;

// Appends tensors to one unit; names get the unit's prefix.
class UnitBuilder {
 public:
  UnitBuilder(UnitKind kind, int64_t layer) {
    unit_.kind = kind;
    unit_.layer = layer;
  }
  void Weight(std::string name, std::vector<int64_t> shape, double std = kInitStd) {
    Add(std::move(name), std::move(shape), InitKind::kNormal, std);
  }
  void Ones(std::string name, int64_t size) { Add(std::move(name), {size}, InitKind::kOnes, 0); }
  void Zeros(std::string name, int64_t size) { Add(std::move(name), {size}, InitKind::kZeros, 0); }
  UnitSpec Take() { return std::move(unit_); }

 private:
  void Add(std::string name, std::vector<int64_t> shape, InitKind init, double std) {
    TensorSpec tensor;
    tensor.name = std::move(name);
    tensor.num_elements = 1;
    for (const int64_t extent : shape) tensor.num_elements *= extent;
    tensor.shape = std::move(shape);
    tensor.offset_elements = unit_.num_elements;
    tensor.init = init;
    tensor.init_std = std;
    unit_.num_elements += tensor.num_elements;
    unit_.tensors.push_back(std::move(tensor));
  }

  UnitSpec unit_;
};

UnitSpec Gpt2Layer(const ModelShape& s, int64_t layer) {
  UnitBuilder b(UnitKind::kLayer, layer);
  const std::string p = absl::StrCat("transformer.h.", layer, ".");
  const int64_t h = s.hidden_size;
  // GPT-2 scales what is added to the residual stream, twice a layer, so that its variance does not grow with depth.
  const double residual_std = kInitStd / std::sqrt(2.0 * static_cast<double>(s.num_layers));
  b.Ones(p + "ln_1.weight", h);
  b.Zeros(p + "ln_1.bias", h);
  b.Weight(p + "attn.c_attn.weight", {h, 3 * h});
  b.Zeros(p + "attn.c_attn.bias", 3 * h);
  b.Weight(p + "attn.c_proj.weight", {h, h}, residual_std);
  b.Zeros(p + "attn.c_proj.bias", h);
  b.Ones(p + "ln_2.weight", h);
  b.Zeros(p + "ln_2.bias", h);
  b.Weight(p + "mlp.c_fc.weight", {h, s.intermediate_size});
  b.Zeros(p + "mlp.c_fc.bias", s.intermediate_size);
  b.Weight(p + "mlp.c_proj.weight", {s.intermediate_size, h}, residual_std);
  b.Zeros(p + "mlp.c_proj.bias", h);
  return b.Take();
}

UnitSpec LlamaLayer(const ModelShape& s, int64_t layer) {
  UnitBuilder b(UnitKind::kLayer, layer);
  const std::string p = absl::StrCat("model.layers.", layer, ".");
  const int64_t h = s.hidden_size, q = s.num_heads * s.head_dim, kv = s.num_kv_heads * s.head_dim;
  b.Ones(p + "input_layernorm.weight", h);
  b.Weight(p + "self_attn.q_proj.weight", {q, h});
  b.Weight(p + "self_attn.k_proj.weight", {kv, h});
  b.Weight(p + "self_attn.v_proj.weight", {kv, h});
  b.Weight(p + "self_attn.o_proj.weight", {h, q});
  b.Ones(p + "post_attention_layernorm.weight", h);
  b.Weight(p + "mlp.gate_proj.weight", {s.intermediate_size, h});
  b.Weight(p + "mlp.up_proj.weight", {s.intermediate_size, h});
  b.Weight(p + "mlp.down_proj.weight", {h, s.intermediate_size});
  return b.Take();
}

}  // namespace

std::vector<UnitSpec> ParameterLayout(const ModelShape& shape) {
  const bool gpt2 = shape.family == ModelFamily::kGpt2;
  const int64_t h = shape.hidden_size;
  std::vector<UnitSpec> units;
  units.reserve(static_cast<size_t>(NumUnits(shape)));

  UnitBuilder embedding(UnitKind::kEmbedding, -1);
  embedding.Weight(gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight", {shape.vocab_size, h});
  if (gpt2) embedding.Weight("transformer.wpe.weight", {shape.max_positions, h});
  units.push_back(embedding.Take());

  for (int64_t layer = 0; layer < shape.num_layers; ++layer) {
    units.push_back(gpt2 ? Gpt2Layer(shape, layer) : LlamaLayer(shape, layer));
  }

  UnitBuilder head(UnitKind::kHead, -1);
  head.Ones(gpt2 ? "transformer.ln_f.weight" : "model.norm.weight", h);
  if (gpt2) head.Zeros("transformer.ln_f.bias", h);
  if (!shape.tie_embeddings) head.Weight("lm_head.weight", {shape.vocab_size, h});
  units.push_back(head.Take());
  return units;
}

int64_t NumParameters(const ModelShape& shape) {
  int64_t sum = 0;
  for (const UnitSpec& unit : ParameterLayout(shape)) sum += unit.num_elements;
  return sum;
}

}  // namespace motley
