// HuggingFace's config.json: the keys that shape the arithmetic are read or refused, all others are ignored.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clean_text.h"
#include "common/model.h"
#include "common/parse_json.h"
#include "common/status_macros.h"

namespace motley {
namespace {

using Json = nlohmann::json;

// Far above any model; together they keep every product of sizes, in bytes, within int64.
constexpr int64_t kMaxSize = int64_t{1} << 20;
constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
constexpr int64_t kMaxLayers = 10000;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 4096;

// Reads typed keys; absent and null are the same. Errors name the text and the key.
class Config {
 public:
  Config(const Json& json, std::string source) : json_(json), source_(std::move(source)) {}

  absl::Status Error(const std::string& key, const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(Name(key), " ", what));
  }
  bool Has(const std::string& key) const { return json_.contains(key) && !json_.at(key).is_null(); }

  // A size of at least 1; required when `fallback` is 0.
  absl::StatusOr<int64_t> Size(const std::string& key, int64_t fallback = 0, int64_t limit = kMaxSize) const {
    if (!Has(key)) {
      if (fallback > 0) return fallback;
      return Error(key, "is missing");
    }
    const Json& value = json_.at(key);
    if (!value.is_number_integer()) return Error(key, absl::StrCat("must be an integer, got ", EchoJson(value)));
    // Unsigned values above the limit would wrap in a signed read.
    if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(limit)) {
      return Error(key, absl::StrCat("must be at most ", limit, ", got ", EchoJson(value)));
    }
    if (value.get<int64_t>() < 1) return Error(key, absl::StrCat("must be at least 1, got ", EchoJson(value)));
    return value.get<int64_t>();
  }
  absl::StatusOr<double> Positive(const std::string& key, double fallback) const {
    if (!Has(key)) return fallback;
    const Json& value = json_.at(key);
    if (!value.is_number() || !(value.get<double>() > 0)) {
      return Error(key, absl::StrCat("must be a number above 0, got ", EchoJson(value)));
    }
    return value.get<double>();
  }
  absl::StatusOr<bool> Flag(const std::string& key, bool fallback) const {
    if (!Has(key)) return fallback;
    const Json& value = json_.at(key);
    if (!value.is_boolean()) return Error(key, absl::StrCat("must be true or false, got ", EchoJson(value)));
    return value.get<bool>();
  }
  // Present values other than these are something this engine does not compute.
  absl::Status Only(const std::string& key, const std::vector<Json>& allowed) const {
    if (!Has(key)) return absl::OkStatus();
    for (const Json& value : allowed) {
      if (json_.at(key) == value) return absl::OkStatus();
    }
    const std::string use = allowed.empty() ? "remove it" : absl::StrCat("use ", EchoJson(allowed.front()));
    return Error(key, absl::StrCat(EchoJson(json_.at(key)), " is not supported; ", use));
  }

  const Json& json() const { return json_; }
  std::string Name(const std::string& key) const { return absl::StrCat(source_, ": ", key); }

 private:
  const Json& json_;
  const std::string source_;
};

absl::Status Refuse(const Config& config, const std::string& key, const std::string& why) {
  if (!config.Has(key)) return absl::OkStatus();
  return config.Error(key, absl::StrCat(EchoJson(config.json().at(key)), ": ", why));
}

absl::Status RefuseUnsupported(const Config& config) {
  // Without these keys it would be another model: the way out is another model, never to remove them.
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_tok"}) {
    MOTLEY_RETURN_IF_ERROR(Refuse(config, key, "mixture of experts is not supported; use a dense model"));
  }
  for (const char* key : {"context_parallel_size", "context_parallel_degree", "cp_size"}) {
    MOTLEY_RETURN_IF_ERROR(Refuse(config, key, "context parallelism is not supported; samples are not split along the sequence"));
  }
  MOTLEY_RETURN_IF_ERROR(Refuse(config, "sliding_window",
                                "attention over a window of the newest tokens alone is not supported; use a model with full "
                                "attention (null here)"));
  return config.Only("quantization_config", {});
}

bool IsMixtureOfExperts(const Json& type) {
  if (!type.is_string()) return false;
  const std::string name = type.get<std::string>();
  if (name.find("moe") != std::string::npos) return true;
  for (const char* known :
       {"mixtral", "deepseek_v2", "deepseek_v3", "dbrx", "jamba", "arctic", "switch_transformers", "llama4"}) {
    if (name == known) return true;
  }
  return false;
}

// The attention's kernels and layouts work for what these say.
absl::StatusOr<ModelShape> Checked(const Config& config, const ModelShape& shape) {
  if (shape.num_heads % shape.num_kv_heads != 0) {
    return config.Error("num_key_value_heads",
                        absl::StrCat("must divide num_attention_heads ", shape.num_heads, ", got ", shape.num_kv_heads));
  }
  if (shape.family == ModelFamily::kLlama && shape.head_dim % 2 != 0) {
    return config.Error("head_dim", absl::StrCat("must be even for rotary positions, got ", shape.head_dim));
  }
  return shape;
}

absl::StatusOr<ModelShape> ParseGpt2(const Config& config) {
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) MOTLEY_RETURN_IF_ERROR(config.Only(key, {0.0}));
  MOTLEY_RETURN_IF_ERROR(config.Only("activation_function", {"gelu_new", "gelu_pytorch_tanh"}));
  MOTLEY_RETURN_IF_ERROR(config.Only("scale_attn_weights", {true}));
  MOTLEY_RETURN_IF_ERROR(config.Only("scale_attn_by_inverse_layer_idx", {false}));
  MOTLEY_RETURN_IF_ERROR(config.Only("add_cross_attention", {false}));
  ModelShape s;
  s.family = ModelFamily::kGpt2;
  MOTLEY_ASSIGN_OR_RETURN(s.vocab_size, config.Size("vocab_size", 50257, kMaxVocabulary));
  MOTLEY_ASSIGN_OR_RETURN(s.hidden_size, config.Size("n_embd"));
  MOTLEY_ASSIGN_OR_RETURN(s.num_layers, config.Size("n_layer", 0, kMaxLayers));
  MOTLEY_ASSIGN_OR_RETURN(s.num_heads, config.Size("n_head", 0, kMaxHeads));
  MOTLEY_ASSIGN_OR_RETURN(s.intermediate_size, config.Size("n_inner", 4 * s.hidden_size));
  MOTLEY_ASSIGN_OR_RETURN(s.max_positions, config.Size("n_positions", 1024));
  MOTLEY_ASSIGN_OR_RETURN(s.norm_eps, config.Positive("layer_norm_epsilon", 1e-5));
  MOTLEY_ASSIGN_OR_RETURN(s.tie_embeddings, config.Flag("tie_word_embeddings", true));
  if (s.hidden_size % s.num_heads != 0) {
    return config.Error("n_embd", absl::StrCat("must be a multiple of n_head ", s.num_heads, ", got ", s.hidden_size));
  }
  s.num_kv_heads = s.num_heads;
  s.head_dim = s.hidden_size / s.num_heads;
  return Checked(config, s);
}

// Newer configs hold rope_theta inside rope_parameters; older ones beside a rope_scaling of null.
absl::StatusOr<double> ParseRope(const Config& config) {
  MOTLEY_ASSIGN_OR_RETURN(double theta, config.Positive("rope_theta", 10000.0));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.Has(key)) continue;
    const Json& rope = config.json().at(key);
    if (!rope.is_object()) return config.Error(key, "must be an object");
    const Config inner(rope, config.Name(key));
    for (const char* type : {"rope_type", "type"}) {
      if (inner.Has(type) && rope.at(type) != "default") {
        return config.Error(key, absl::StrCat("with ", type, " ", EchoJson(rope.at(type)), " is not supported; use \"default\""));
      }
    }
    MOTLEY_ASSIGN_OR_RETURN(theta, inner.Positive("rope_theta", theta));
  }
  return theta;
}

absl::StatusOr<ModelShape> ParseLlama(const Config& config) {
  MOTLEY_RETURN_IF_ERROR(config.Only("hidden_act", {"silu"}));
  MOTLEY_RETURN_IF_ERROR(config.Only("attention_bias", {false}));
  MOTLEY_RETURN_IF_ERROR(config.Only("mlp_bias", {false}));
  MOTLEY_RETURN_IF_ERROR(config.Only("attention_dropout", {0.0}));
  ModelShape s;
  s.family = ModelFamily::kLlama;
  MOTLEY_ASSIGN_OR_RETURN(s.vocab_size, config.Size("vocab_size", 32000, kMaxVocabulary));
  MOTLEY_ASSIGN_OR_RETURN(s.hidden_size, config.Size("hidden_size"));
  MOTLEY_ASSIGN_OR_RETURN(s.num_layers, config.Size("num_hidden_layers", 0, kMaxLayers));
  MOTLEY_ASSIGN_OR_RETURN(s.num_heads, config.Size("num_attention_heads", 0, kMaxHeads));
  MOTLEY_ASSIGN_OR_RETURN(s.num_kv_heads, config.Size("num_key_value_heads", s.num_heads, kMaxHeads));
  MOTLEY_ASSIGN_OR_RETURN(s.intermediate_size, config.Size("intermediate_size"));
  MOTLEY_ASSIGN_OR_RETURN(s.max_positions, config.Size("max_position_embeddings", 2048));
  MOTLEY_ASSIGN_OR_RETURN(s.norm_eps, config.Positive("rms_norm_eps", 1e-6));
  MOTLEY_ASSIGN_OR_RETURN(s.rope_theta, ParseRope(config));
  MOTLEY_ASSIGN_OR_RETURN(s.tie_embeddings, config.Flag("tie_word_embeddings", false));
  if (!config.Has("head_dim") && s.hidden_size % s.num_heads != 0) {
    return config.Error("hidden_size",
                        absl::StrCat("must be a multiple of num_attention_heads ", s.num_heads, ", got ", s.hidden_size));
  }
  MOTLEY_ASSIGN_OR_RETURN(s.head_dim, config.Size("head_dim", std::max<int64_t>(1, s.hidden_size / s.num_heads), kMaxHeadDim));
  return Checked(config, s);
}

}  // namespace

absl::StatusOr<ModelShape> ParseHfConfig(std::string_view json_text, std::string_view source) {
  const std::string name = Echo(source);
  MOTLEY_ASSIGN_OR_RETURN(const Json json, ParseJson(json_text, source));
  if (!json.is_object()) return absl::InvalidArgumentError(absl::StrCat(name, ": must be a JSON object"));
  const Config config(json, name);
  MOTLEY_RETURN_IF_ERROR(RefuseUnsupported(config));
  const Json type = json.value("model_type", Json());
  if (type == "gpt2") return ParseGpt2(config);
  if (type == "llama") return ParseLlama(config);
  if (IsMixtureOfExperts(type)) {
    return config.Error("model_type", absl::StrCat(EchoJson(type), ": mixture of experts is not supported; use a dense model"));
  }
  return config.Error("model_type", absl::StrCat("must be \"gpt2\" or \"llama\", got ", EchoJson(type)));
}

std::string ToHfConfig(const ModelShape& shape) {
  Json json;
  json["vocab_size"] = shape.vocab_size;
  json["tie_word_embeddings"] = shape.tie_embeddings;
  // Bytes have no special tokens; transformers' defaults would lie outside a vocabulary of 256.
  json["bos_token_id"] = nullptr;
  json["eos_token_id"] = nullptr;
  if (shape.family == ModelFamily::kGpt2) {
    json["model_type"] = "gpt2";
    json["architectures"] = {"GPT2LMHeadModel"};
    json["n_embd"] = shape.hidden_size;
    json["n_layer"] = shape.num_layers;
    json["n_head"] = shape.num_heads;
    json["n_inner"] = shape.intermediate_size;
    json["n_positions"] = shape.max_positions;
    json["layer_norm_epsilon"] = shape.norm_eps;
    json["activation_function"] = "gelu_new";
    for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) json[key] = 0.0;
  } else {
    json["model_type"] = "llama";
    json["architectures"] = {"LlamaForCausalLM"};
    json["hidden_size"] = shape.hidden_size;
    json["num_hidden_layers"] = shape.num_layers;
    json["num_attention_heads"] = shape.num_heads;
    json["num_key_value_heads"] = shape.num_kv_heads;
    json["head_dim"] = shape.head_dim;
    json["intermediate_size"] = shape.intermediate_size;
    json["max_position_embeddings"] = shape.max_positions;
    json["rms_norm_eps"] = shape.norm_eps;
    json["hidden_act"] = "silu";
    json["attention_bias"] = false;
    json["mlp_bias"] = false;
    json["attention_dropout"] = 0.0;
    // Both places: transformers 5 reads the second, older readers the first.
    json["rope_theta"] = shape.rope_theta;
    json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", shape.rope_theta}};
  }
  return json.dump(2);
}

}  // namespace motley
