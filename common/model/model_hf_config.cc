// HuggingFace's config.json: the keys that shape the arithmetic are read, refused or noted, all others are ignored.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/parse_json.h"
#include "common/base/status_macros.h"
#include "common/model/hf_other_files.h"
#include "common/model/hf_reader.h"
#include "common/model/hf_rope.h"
#include "common/model/hf_types.h"
#include "common/model/hf_windows.h"
#include "common/model/model.h"
#include "common/model/operators.h"

namespace motley {
namespace {

using Json = nlohmann::json;

constexpr char kLeftOut[] = "left out, so it is the default of transformers";
constexpr char kDropout[] =
    "priced as without dropout: no product depends on it, and masks, a byte an element at most, are not counted";
constexpr char kNoDropout[] = "Motley trains without dropout";
constexpr int64_t kDefaultRotaryInterval = 4;  // of layers, one of which has no rotary positions
constexpr char kBiases[] = "priced as without: biases change no product, and their elements are not counted";

// Without these keys it would be another model: the way out is another model, never to remove them.
void ReadForeignKeys(const HfReader& config) {
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_tok"}) {
    config.Never(key, "mixture of experts is not supported; use a dense model");
  }
  for (const char* key : {"context_parallel_size", "context_parallel_degree", "cp_size"}) {
    config.Never(key, "context parallelism is not supported; samples are not split along the sequence");
  }
  config.Only("quantization_config", {}, "not counted: parameters are priced in the precision of the training");
}

void ReadDropouts(const HfReader& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (!config.Has(key) || config.At(key) == 0) continue;
    const std::string shown = EchoJson(config.At(key));
    const bool share = config.At(key).is_number() && config.At(key).get<double>() > 0 && config.At(key).get<double>() < 1;
    if (share) config.Noted(absl::StrCat(key, " ", shown), kDropout, kNoDropout);
    if (!share) config.Wrong(key, absl::StrCat("must be a number from 0 to less than 1, got ", shown));
  }
}

// One that makes the model as large as it is: who left it out by mistake reads which it is now.
int64_t TellingSize(const HfReader& config, const char* key, int64_t left_out, int64_t limit = HfReader::kMaxSize) {
  if (config.Has(key)) return config.Size(key, 0, limit);
  config.Noted(absl::StrCat(key, " ", left_out), kLeftOut, kLeftOut);
  return left_out;
}

void ReadNEmbdKeys(const HfReader& config, const HfType& type, ModelShape* shape) {
  const HfDefaults& left_out = type.left_out;
  ModelShape& s = *shape;
  ReadDropouts(config, {"resid_pdrop", "embd_pdrop", "attn_pdrop"});
  config.Only("activation_function", {"gelu_new", "gelu_pytorch_tanh"}, kNoProduct);
  config.Only("scale_attn_weights", {true}, kNoProduct);
  config.Only("scale_attn_by_inverse_layer_idx", {false}, kNoProduct);
  if (config.Flag("add_cross_attention", false)) config.Never("add_cross_attention", "cross-attention is not supported");
  s.vocab_size = config.Size("vocab_size", left_out.vocab, HfReader::kMaxVocabulary);
  s.hidden_size = TellingSize(config, "n_embd", left_out.hidden);
  s.num_layers = TellingSize(config, "n_layer", left_out.layers, HfReader::kMaxLayers);
  s.num_heads = TellingSize(config, "n_head", left_out.heads, HfReader::kMaxHeads);
  s.intermediate_size = config.Size("n_inner", std::max<int64_t>(1, 4 * s.hidden_size));
  s.max_positions = config.Size("n_positions", left_out.positions);
  s.norm_eps = config.Positive("layer_norm_epsilon", left_out.norm_eps);
  s.tie_embeddings = config.Flag("tie_word_embeddings", left_out.tied);
  s.num_kv_heads = s.num_heads;
  if (s.hidden_size == 0 || s.num_heads == 0) return;
  s.head_dim = s.hidden_size / s.num_heads;
  if (s.hidden_size % s.num_heads == 0) return;
  config.Wrong("n_embd", absl::StrCat("must be a multiple of n_head ", s.num_heads, ", got ", s.hidden_size));
}

// attention_bias is of all four products of attention. A family with biases of some has them always, and does not read the key.
void ReadGatedLayerKeys(const HfReader& config, const FamilyTraits& traits) {
  const char* const activation = traits.activation == ActivationKind::kGeGlu ? "gelu_pytorch_tanh" : "silu";
  for (const char* key : {"hidden_act", "hidden_activation"}) config.Only(key, {activation}, kNoProduct);
  if (!traits.biases.qkv) config.Only("attention_bias", {false}, kBiases);
  config.Only("mlp_bias", {false}, kBiases);
  ReadDropouts(config, {"attention_dropout", "resid_pdrop", "embd_pdrop"});
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"}) config.Only(key, {}, kNoProduct);
  config.Only("use_bidirectional_attention", {false}, kNoProduct);
}

// Null means one for each head; left out it is what the type has, which may not fit the heads that the file gives.
int64_t KvHeads(const HfReader& config, int64_t heads, int64_t left_out) {
  constexpr char kKey[] = "num_key_value_heads";
  if (config.Has(kKey)) return config.Size(kKey, 0, HfReader::kMaxHeads);
  if (config.Given(kKey) || left_out == 0 || heads == 0) return heads;
  if (heads % left_out == 0) return left_out;
  config.Wrong(kKey, absl::StrCat("is left out, which means ", left_out,
                                  " for this type and does not divide num_attention_heads ", heads, "; add it"));
  return 0;
}

void ReadHeadDim(const HfReader& config, const HfType& type, ModelShape* shape) {
  ModelShape& s = *shape;
  if (s.num_heads == 0 || s.num_kv_heads == 0 || s.hidden_size == 0) return;
  const int64_t left_out = type.left_out.head_dim;
  if (left_out == 0 && !config.Has("head_dim") && s.hidden_size % s.num_heads != 0) {
    config.Wrong("hidden_size", absl::StrCat("must be a multiple of num_attention_heads ", s.num_heads, ", got ", s.hidden_size));
    return;
  }
  const int64_t share = left_out != 0 ? left_out : std::max<int64_t>(1, s.hidden_size / s.num_heads);
  s.head_dim = config.Size("head_dim", share, HfReader::kMaxHeadDim);
  // The attention's kernels and layouts work for what these say.
  if (s.num_heads % s.num_kv_heads != 0) {
    config.Wrong("num_key_value_heads", absl::StrCat("must divide num_attention_heads ", s.num_heads, ", got ", s.num_kv_heads));
  }
  if (s.head_dim % 2 != 0) {
    config.Wrong("head_dim", absl::StrCat("must be even for rotary positions, got ", s.head_dim));
  }
  if (!TraitsOf(type.family).query_scalar) return config.Only("query_pre_attn_scalar", {s.head_dim}, kNoProduct);
  s.query_scalar = config.Size("query_pre_attn_scalar", type.left_out.query_scalar);
  if (s.query_scalar == s.head_dim) s.query_scalar = 0;
}

// Of each layer 1, or 0 where it has no rotary positions; left out: 0 in every so manyth. Behind num_hidden_layers.
void ReadRotaryLayers(const HfReader& config, ModelShape* shape) {
  constexpr char kKey[] = "no_rope_layers";
  const int64_t interval = config.Size("no_rope_layer_interval", kDefaultRotaryInterval);
  std::vector<LayerKind> kinds;
  if (config.Has(kKey)) {
    const Json& layers = config.At(kKey);
    const auto known = [](const Json& layer) { return layer == 0 || layer == 1; };
    if (!layers.is_array() || !std::all_of(layers.begin(), layers.end(), known) ||
        static_cast<int64_t>(layers.size()) != shape->num_layers) {
      config.Wrong(kKey,
                   absl::StrCat("must have 1 or 0 (without rotary positions) for each of the ", shape->num_layers, " layers"));
      return;
    }
    for (const Json& layer : layers) kinds.push_back({.rotary = layer == 1});
  } else {
    for (int64_t i = 0; interval > 0 && i < shape->num_layers; ++i) kinds.push_back({.rotary = (i + 1) % interval != 0});
  }
  const bool alike = std::all_of(kinds.begin(), kinds.end(), [](const LayerKind& kind) { return kind == LayerKind(); });
  if (!alike) shape->layer_kinds = std::move(kinds);
}

void ReadHiddenSizeKeys(const HfReader& config, const HfType& type, int64_t seq_len, ModelShape* shape) {
  const HfDefaults& left_out = type.left_out;
  ModelShape& s = *shape;
  ReadGatedLayerKeys(config, TraitsOf(type.family));
  s.rope_theta = left_out.rope_theta;
  s.max_positions = config.Size("max_position_embeddings", left_out.positions);
  const bool by_window = TraitsOf(type.family).rotary_bases == RotaryBases::kByWindow;
  const double of_windows = by_window ? ReadRopeByWindow(config, left_out.local_theta, &s) : (ReadRope(config, &s), s.rope_theta);
  s.vocab_size = config.Size("vocab_size", left_out.vocab, HfReader::kMaxVocabulary);
  s.hidden_size = TellingSize(config, "hidden_size", left_out.hidden);
  s.num_layers = TellingSize(config, "num_hidden_layers", left_out.layers, HfReader::kMaxLayers);
  if (TraitsOf(type.family).rotary_layers == RotaryLayers::kChosen) ReadRotaryLayers(config, &s);
  ReadWindows(config, type.window, seq_len, &s);
  for (LayerKind& kind : s.layer_kinds) kind.rope_theta = kind.window != 0 && of_windows != s.rope_theta ? of_windows : 0;
  s.num_heads = TellingSize(config, "num_attention_heads", left_out.heads, HfReader::kMaxHeads);
  s.num_kv_heads = KvHeads(config, s.num_heads, left_out.kv_heads);
  s.intermediate_size = TellingSize(config, "intermediate_size", left_out.intermediate);
  s.norm_eps = config.Positive("rms_norm_eps", left_out.norm_eps);
  s.tie_embeddings = config.Flag("tie_word_embeddings", left_out.tied);
  ReadHeadDim(config, type, &s);
}

// Gemma 2's norms behind attention and MLP keep their inputs, and those are not small beside what a layer keeps.
std::string EffectOf(const HfType& type, const ModelShape& shape) {
  std::string effect(type.effect);
  if (type.name != "gemma2") return effect;
  const auto kept = static_cast<double>(SavedBytes(shape, UnitKind::kLayer, 1, 1, DType::kFloat32));
  const double more = 2.0 * static_cast<double>(shape.hidden_size + 1) * static_cast<double>(SizeOfBytes(DType::kFloat32));
  absl::StrAppendFormat(&effect, "; its two more norms keep %.0f %% more bytes of a layer's activations than counted",
                        100 * more / kept);
  return effect;
}

// What a config is read for.
struct Purpose {
  bool training = false;
  int64_t seq_len = 0;  // 0: not known
};

struct Reading {
  ModelShape shape;
  std::vector<HfFinding> findings;
};

HfFinding DifferenceOf(const HfType& type, const std::string& source, const ModelShape& shape) {
  return {source, absl::StrCat("model_type \"", std::string(type.name), "\""),
          absl::StrCat(" can be planned but not trained: ", std::string(type.difference), "; the engine trains ",
                       KnownHfTypes(/*trained=*/true, "and")),
          EffectOf(type, shape)};
}

// Of a type that is not known no other key means anything for certain.
void SayUnknownType(const HfReader& config, const Json& json, const std::string& word, const Purpose& purpose) {
  const std::string known = KnownHfTypes(purpose.training, "or");
  const std::string_view foreign = DifferenceOfForeignType(word);
  const std::string other = WhatElseIsInside(json);
  if (IsMixtureOfExperts(word)) {
    config.Never("model_type", "it is a mixture of experts, which is not supported; use a dense model");
  } else if (!foreign.empty()) {
    config.Never("model_type", absl::StrCat(std::string(foreign), "; it must be ", known));
  } else if (!other.empty()) {
    config.Wrong("model_type", absl::StrCat(word.empty() ? "is missing" : absl::StrCat("is ", Quoted(word)), ": ", other));
  } else if (!config.Has("model_type")) {
    config.Wrong("model_type", absl::StrCat("is missing; it must be ", known));
  } else {
    config.Wrong("model_type", absl::StrCat("must be ", known, ", got ", EchoJson(config.At("model_type"))));
  }
}

// Everything of the config, in the order of its importance: the type first.
Reading ReadModel(const Json& json, const std::string& name, const Purpose& purpose) {
  Reading reading;
  const HfReader config(json, name, &reading.findings);
  const Json value = json.value("model_type", Json());
  const std::string word = value.is_string() ? value.get<std::string>() : "";
  const HfType* type = FindHfType(word);
  if (type == nullptr) {
    SayUnknownType(config, json, word, purpose);
    return reading;
  }
  reading.shape.family = type->family;
  // Nor does it help to mend other keys of a type that the engine does not train.
  if (purpose.training && !type->difference.empty()) {
    reading.findings.push_back(DifferenceOf(*type, name, reading.shape));
    return reading;
  }
  ReadForeignKeys(config);
  switch (TraitsOf(type->family).config_keys) {
    case ConfigKeys::kNEmbd:
      ReadNEmbdKeys(config, *type, &reading.shape);
      break;
    case ConfigKeys::kHiddenSize:
      ReadHiddenSizeKeys(config, *type, purpose.seq_len, &reading.shape);
      break;
  }
  if (!type->difference.empty()) {
    reading.findings.insert(reading.findings.begin(), DifferenceOf(*type, name, reading.shape));
  }
  return reading;
}

absl::StatusOr<Reading> Read(std::string_view json_text, std::string_view source, const Purpose& purpose) {
  const std::string name = Echo(source);
  if (const std::string other = WhatElseItIs(json_text); !other.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": is not JSON: ", other));
  }
  MOTLEY_ASSIGN_OR_RETURN(const Json json, ParseJson(json_text, source));
  if (!json.is_object()) return absl::InvalidArgumentError(absl::StrCat(name, ": must be a JSON object"));
  return ReadModel(json, name, purpose);
}

std::string RefusalOf(const HfFinding& finding) { return absl::StrCat(finding.source, ": ", finding.subject, finding.refusal); }

// What has the same effect is one note.
std::vector<std::string> NotesOf(const std::vector<HfFinding>& findings) {
  std::vector<std::pair<std::string, const HfFinding*>> groups;  // the subjects, and the first of them
  for (const HfFinding& finding : findings) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& known) {
      return known.second->effect == finding.effect && known.second->source == finding.source &&
             known.second->trained == finding.trained;
    });
    if (group == groups.end()) {
      groups.emplace_back(finding.subject, &finding);
    } else {
      absl::StrAppend(&group->first, ", ", finding.subject);
    }
  }
  std::vector<std::string> notes;
  for (const auto& [subjects, first] : groups) {
    const std::string trained = first->trained == first->effect ? "" : absl::StrCat("; ", first->trained);
    notes.push_back(absl::StrCat(first->source, ": ", subjects, ": ", first->effect, trained));
  }
  return notes;
}

}  // namespace

absl::StatusOr<HfModel> ParseHfModel(std::string_view json_text, std::string_view source, int64_t seq_len) {
  MOTLEY_ASSIGN_OR_RETURN(const Reading reading, Read(json_text, source, {.training = true, .seq_len = seq_len}));
  std::vector<std::string> refusals, notes;
  for (const HfFinding& finding : reading.findings) {
    if (finding.effect.empty() || !finding.refusal.empty()) {
      refusals.push_back(RefusalOf(finding));
    } else {
      notes.push_back(absl::StrCat(finding.source, ": ", finding.subject, ": ", finding.trained));
    }
  }
  if (!refusals.empty()) return absl::InvalidArgumentError(absl::StrJoin(refusals, "\n"));
  return HfModel{reading.shape, std::move(notes)};
}

absl::StatusOr<ModelShape> ParseHfConfig(std::string_view json_text, std::string_view source, int64_t seq_len) {
  MOTLEY_ASSIGN_OR_RETURN(HfModel model, ParseHfModel(json_text, source, seq_len));
  return std::move(model.shape);
}

absl::StatusOr<HfModel> ParseHfShape(std::string_view json_text, std::string_view source) {
  MOTLEY_ASSIGN_OR_RETURN(const Reading reading, Read(json_text, source, Purpose()));
  std::vector<std::string> wrong;
  for (const HfFinding& finding : reading.findings) {
    if (finding.effect.empty()) wrong.push_back(RefusalOf(finding));
  }
  if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrJoin(wrong, "\n"));
  return HfModel{reading.shape, NotesOf(reading.findings)};
}

}  // namespace motley
