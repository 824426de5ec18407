#include "common/model/model_family.h"

#include <algorithm>
#include <iterator>

// A warning elsewhere: here it is what makes the table exhaustive.
#pragma GCC diagnostic error "-Wswitch"

namespace motley {
namespace {

constexpr std::string_view kGpt2Qkv[] = {"attn.c_attn"}, kGpt2Up[] = {"mlp.c_fc"};
constexpr FamilyTraits kGpt2 = {
    .model_type = "gpt2",
    .norm = NormKind::kLayerNorm,
    .positions = PositionKind::kLearned,
    .activation = ActivationKind::kGeluTanh,
    .biases = {.norm = true, .qkv = true, .out = true, .mlp = true},
    .weights = WeightLayout::kInOut,
    .residuals_by_depth = true,
    .config_keys = ConfigKeys::kNEmbd,
    .config = R"({"architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new", "resid_pdrop": 0.0,
                  "embd_pdrop": 0.0, "attn_pdrop": 0.0})",
    .names = {.tokens = "transformer.wte",
              .positions = "transformer.wpe",
              .layers = "transformer.h.",
              .norm1 = "ln_1",
              .qkv = kGpt2Qkv,
              .out = "attn.c_proj",
              .norm2 = "ln_2",
              .up = kGpt2Up,
              .down = "mlp.c_proj",
              .final_norm = "transformer.ln_f"},
};

constexpr std::string_view kLlamaQkv[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
constexpr std::string_view kLlamaUp[] = {"mlp.gate_proj", "mlp.up_proj"};
constexpr FamilyTraits kLlama = {
    .model_type = "llama",
    .norm = NormKind::kRmsNorm,
    .positions = PositionKind::kRotary,
    .activation = ActivationKind::kSwiGlu,
    .biases = {},
    .weights = WeightLayout::kOutIn,
    .residuals_by_depth = false,
    .config_keys = ConfigKeys::kHiddenSize,
    .config = R"({"architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "attention_bias": false, "mlp_bias": false,
                  "attention_dropout": 0.0})",
    .names = {.tokens = "model.embed_tokens",
              .positions = "",
              .layers = "model.layers.",
              .norm1 = "input_layernorm",
              .qkv = kLlamaQkv,
              .out = "self_attn.o_proj",
              .norm2 = "post_attention_layernorm",
              .up = kLlamaUp,
              .down = "mlp.down_proj",
              .final_norm = "model.norm"},
};

// Qwen 2 and 2.5: Llama's layers, with biases of the queries, keys and values alone.
constexpr FamilyTraits kQwen2 = [] {
  FamilyTraits traits = kLlama;
  traits.model_type = "qwen2";
  traits.biases.qkv = true;
  traits.config = R"({"architectures": ["Qwen2ForCausalLM"], "hidden_act": "silu", "use_sliding_window": false,
                      "attention_dropout": 0.0})";
  return traits;
}();

// Phi-3 and Phi-4: Llama's layers, with products that are stored fused.
constexpr std::string_view kPhi3Qkv[] = {"self_attn.qkv_proj"}, kPhi3Up[] = {"mlp.gate_up_proj"};
constexpr FamilyTraits kPhi3 = [] {
  FamilyTraits traits = kLlama;
  traits.model_type = "phi3";
  traits.names.qkv = kPhi3Qkv;
  traits.names.up = kPhi3Up;
  traits.config = R"({"architectures": ["Phi3ForCausalLM"], "hidden_act": "silu", "attention_bias": false,
                      "attention_dropout": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "sliding_window": null,
                      "pad_token_id": null})";
  return traits;
}();

// Qwen 3: Llama's layers, with norms of each query and key.
constexpr std::string_view kQwen3HeadNorm[] = {"self_attn.q_norm", "self_attn.k_norm"};
constexpr FamilyTraits kQwen3 = [] {
  FamilyTraits traits = kLlama;
  traits.model_type = "qwen3";
  traits.head_norm = HeadNorm::kByHead;
  traits.names.head_norm = kQwen3HeadNorm;
  traits.config = R"({"architectures": ["Qwen3ForCausalLM"], "hidden_act": "silu", "attention_bias": false,
                      "use_sliding_window": false, "attention_dropout": 0.0})";
  return traits;
}();

// SmolLM 3: Llama's layers, some of them without positions.
constexpr FamilyTraits kSmolLm3 = [] {
  FamilyTraits traits = kLlama;
  traits.model_type = "smollm3";
  traits.rotary_layers = RotaryLayers::kChosen;
  traits.config = R"({"architectures": ["SmolLM3ForCausalLM"], "hidden_act": "silu", "attention_bias": false, "mlp_bias": false,
                      "use_sliding_window": false, "attention_dropout": 0.0, "pad_token_id": null})";
  return traits;
}();

// OLMo 2: Llama's products, with norms of what attention and MLP make, and of all queries and all keys of a token.
constexpr FamilyTraits kOlmo2 = [] {
  FamilyTraits traits = kLlama;
  traits.model_type = "olmo2";
  traits.norm_places = NormPlaces::kBehind;
  traits.head_norm = HeadNorm::kWhole;
  traits.names.norm1 = "post_attention_layernorm";
  traits.names.norm2 = "post_feedforward_layernorm";
  traits.names.head_norm = kQwen3HeadNorm;
  traits.config = R"({"architectures": ["Olmo2ForCausalLM"], "hidden_act": "silu", "attention_bias": false,
                      "attention_dropout": 0.0, "pad_token_id": null})";
  return traits;
}();

// Gemma 3, text alone: norms before and behind, which store what they are short of 1, of each query and key, too; GeGLU;
// embeddings that are scaled; and windows, whose layers have a base of rotary positions of their own.
constexpr FamilyTraits kGemma3 = [] {
  FamilyTraits traits = kLlama;
  traits.model_type = "gemma3_text";
  traits.norm = NormKind::kRmsNormPlusOne;
  traits.norm_places = NormPlaces::kBoth;
  traits.activation = ActivationKind::kGeGlu;
  traits.head_norm = HeadNorm::kByHead;
  traits.rotary_bases = RotaryBases::kByWindow;
  traits.scales_embedding = true;
  traits.query_scalar = true;
  traits.names.norm2 = "pre_feedforward_layernorm";
  traits.names.head_norm = kQwen3HeadNorm;
  traits.names.behind1 = "post_attention_layernorm";
  traits.names.behind2 = "post_feedforward_layernorm";
  traits.config = R"({"architectures": ["Gemma3ForCausalLM"], "hidden_activation": "gelu_pytorch_tanh", "attention_bias": false,
                      "attention_dropout": 0.0, "attn_logit_softcapping": null, "final_logit_softcapping": null,
                      "use_bidirectional_attention": false, "pad_token_id": null})";
  return traits;
}();

constexpr const FamilyTraits* RowOf(ModelFamily family) {
  switch (family) {  // without a default: the compiler names a family that has no row
    case ModelFamily::kGpt2:
      return &kGpt2;
    case ModelFamily::kLlama:
      return &kLlama;
    case ModelFamily::kQwen2:
      return &kQwen2;
    case ModelFamily::kPhi3:
      return &kPhi3;
    case ModelFamily::kQwen3:
      return &kQwen3;
    case ModelFamily::kSmolLm3:
      return &kSmolLm3;
    case ModelFamily::kOlmo2:
      return &kOlmo2;
    case ModelFamily::kGemma3:
      return &kGemma3;
  }
  return nullptr;
}
static_assert(RowOf(static_cast<ModelFamily>(std::size(kModelFamilies))) == nullptr, "kModelFamilies lacks the last family");

// What layout and engine can put together.
constexpr bool Whole(const FamilyTraits& t) {
  const bool norm = t.biases.norm == (t.norm == NormKind::kLayerNorm);  // the engine has these two
  const bool tables = t.names.positions.empty() == (TablesOf(t.positions) == 1);
  const bool up = t.names.up.size() == 1 || static_cast<int64_t>(t.names.up.size()) == UpProductsOf(t.activation);
  const bool qkv = t.names.qkv.size() == 1 || t.names.qkv.size() == 3;
  const bool head_norm = static_cast<int64_t>(t.names.head_norm.size()) == HeadNormWeightsOf(t.head_norm);
  const bool head_norm_kind = t.head_norm == HeadNorm::kNone || t.norm != NormKind::kLayerNorm;
  const bool rotary = t.positions == PositionKind::kRotary;
  // Of those with learned positions no table has norms of heads, and no layer positions to leave out.
  const bool of_rotary = rotary || (t.head_norm == HeadNorm::kNone && t.rotary_layers == RotaryLayers::kAll);
  const bool both = t.norm_places == NormPlaces::kBoth;  // of a norm behind there are neither means nor biases
  const bool behind = t.names.behind1.empty() != both && t.names.behind2.empty() != both && (!both || head_norm_kind);
  const bool scaled = !t.scales_embedding || rotary;  // what positions add is not
  return norm && tables && up && qkv && head_norm && head_norm_kind && of_rotary && behind && scaled;
}
static_assert(std::all_of(std::begin(kModelFamilies), std::end(kModelFamilies), [](ModelFamily f) { return Whole(*RowOf(f)); }));

}  // namespace

const FamilyTraits& TraitsOf(ModelFamily family) { return *RowOf(family); }

bool SameLayers(const FamilyTraits& a, const FamilyTraits& b) {
  return a.norm == b.norm && a.positions == b.positions && a.activation == b.activation && a.head_norm == b.head_norm &&
         a.norm_places == b.norm_places;
}

}  // namespace motley
