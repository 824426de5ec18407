#include "common/model/hf_types.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace motley {
namespace {

// Reference: the configuration classes of transformers 4.
constexpr HfDefaults kGpt2Defaults = {50257, 768, 12, 12, 0, 0, 0, 1024, 1e-5, true};
constexpr HfDefaults kLlamaDefaults = {32000, 4096, 32, 32, 0, 0, 11008, 2048, 1e-6, false};
constexpr HfDefaults kQwen2Defaults = {151936, 4096, 32, 32, 32, 0, 22016, 32768, 1e-6, false};
constexpr HfDefaults kMistralDefaults = {32000, 4096, 32, 32, 8, 0, 14336, 131072, 1e-6, false};
constexpr HfDefaults kPhi3Defaults = {32064, 3072, 32, 32, 0, 0, 8192, 4096, 1e-5, false};
constexpr HfDefaults kQwen3Defaults = {151936, 4096, 32, 32, 32, 128, 22016, 32768, 1e-6, false};
constexpr HfDefaults kSmolLm3Defaults = {128256, 2048, 36, 16, 4, 0, 11008, 32768, 1e-6, true, 2000000.0};
constexpr HfDefaults kOlmo2Defaults = {50304, 4096, 32, 32, 0, 0, 11008, 2048, 1e-5, false};
constexpr HfDefaults kGemma2Defaults = {256000, 2304, 26, 8, 4, 256, 9216, 8192, 1e-6, true};
constexpr HfDefaults kGemma3Defaults = {262208, 2304, 26, 8, 4, 256, 9216, 131072, 1e-6, true, 1000000.0, 10000.0, 256};

constexpr std::array kTypes = {
    HfType{"gpt2", ModelFamily::kGpt2, WindowKeys::kNone, kGpt2Defaults, "", ""},
    HfType{"llama", ModelFamily::kLlama, WindowKeys::kNone, kLlamaDefaults, "", ""},
    HfType{"qwen2", ModelFamily::kQwen2, WindowKeys::kSwitched, kQwen2Defaults, "", ""},
    HfType{"mistral", ModelFamily::kLlama, WindowKeys::kAllDefault, kMistralDefaults, "", "", "MistralForCausalLM"},
    HfType{"phi3", ModelFamily::kPhi3, WindowKeys::kAll, kPhi3Defaults, "", ""},
    HfType{"qwen3", ModelFamily::kQwen3, WindowKeys::kSwitched, kQwen3Defaults, "", ""},
    HfType{"smollm3", ModelFamily::kSmolLm3, WindowKeys::kSwitchedSize, kSmolLm3Defaults, "", ""},
    HfType{"olmo2", ModelFamily::kOlmo2, WindowKeys::kNone, kOlmo2Defaults, "", ""},
    HfType{"gemma3_text", ModelFamily::kGemma3, WindowKeys::kPattern, kGemma3Defaults, "", ""},
    HfType{"gemma2", ModelFamily::kLlama, WindowKeys::kAllDefault, kGemma2Defaults,
           "it has norms behind attention and MLP, scaled embeddings and capped logits", "priced as Llama's layers"},
};

// What keeps other families out, for those that people ask for.
struct ForeignType {
  std::string_view name;
  std::string_view difference;
};
constexpr std::array kForeignTypes = {
    ForeignType{"gemma", "Gemma scales its embeddings and gates with GELU"},
    ForeignType{"gemma3",
                "Gemma 3 from 4B on reads images, too, and its positions are scaled; those of text alone are gemma3_text"},
    ForeignType{"bert", "BERT is an encoder, which predicts no next token"},
    ForeignType{"roberta", "RoBERTa is an encoder, which predicts no next token"},
    ForeignType{"t5", "T5 is an encoder and a decoder"},
    ForeignType{"mamba", "Mamba is a state space model and no transformer"},
};

}  // namespace

const HfType* FindHfType(std::string_view name) {
  const auto type = std::find_if(kTypes.begin(), kTypes.end(), [name](const HfType& known) { return known.name == name; });
  return type == kTypes.end() ? nullptr : &*type;
}

const HfType* WindowedTypeOf(ModelFamily family) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [family](const HfType& type) {
    return type.family == family && type.window != WindowKeys::kNone && type.difference.empty();
  });
  return found == kTypes.end() ? nullptr : &*found;
}

std::string KnownHfTypes(bool trained, std::string_view last) {
  std::vector<std::string> names;
  for (const HfType& type : kTypes) {
    if (!trained || type.difference.empty()) names.push_back(absl::StrCat("\"", std::string(type.name), "\""));
  }
  const std::string tail = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " ", std::string(last), " ", tail);
}

std::string_view DifferenceOfForeignType(std::string_view name) {
  for (const ForeignType& type : kForeignTypes) {
    if (type.name == name) return type.difference;
  }
  return {};
}

bool IsMixtureOfExperts(const std::string& type) {
  if (type.find("moe") != std::string::npos) return true;
  for (const char* known :
       {"mixtral", "deepseek_v2", "deepseek_v3", "dbrx", "jamba", "arctic", "switch_transformers", "llama4", "gpt_oss"}) {
    if (type == known) return true;
  }
  return false;
}

}  // namespace motley
