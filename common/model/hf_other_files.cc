#include "common/model/hf_other_files.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/model/hf_types.h"

namespace motley {
namespace {

using Json = nlohmann::json;

// Names under which models of several parts have their language model's config.
constexpr const char* kInner[] = {"text_config",           "llm_config", "language_config", "text_model_config",
                                  "language_model_config", "config"};

// A key that only this file has, and what the file is.
constexpr std::pair<const char*, const char*> kOtherFiles[] = {
    {"weight_map", "it is the index of a model's files of weights"},
    {"tokenizer_class", "it is a tokenizer's config"},
    {"added_tokens", "it is a tokenizer"},
    {"_from_model_config", "it is a model's generation_config.json"},
    {"n_layers", "it is the params.json of another program"},
    {"peft_type", "it is an adapter's config; the base model's is wanted"},
};

std::string TypeOf(const Json& json) {
  const Json type = json.value("model_type", Json());
  return type.is_string() ? type.get<std::string>() : "";
}

}  // namespace

std::string WhatElseItIs(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  if (text.empty()) return "it is empty; download it again";
  if (text.front() == '<') {
    return "it is a web page and no JSON; download the file itself (on huggingface.co with /resolve/ in its address, and with a "
           "login where the model wants one)";
  }
  if (text.starts_with("version https://git-lfs")) return "it is a Git LFS pointer, without the file's contents: git lfs pull";
  return "";
}

std::string WhatElseIsInside(const Json& json) {
  for (const char* key : kInner) {
    if (!json.contains(key) || !json.at(key).is_object()) continue;
    const std::string type = TypeOf(json.at(key));
    const std::string of_type = type.empty() ? "" : absl::StrCat(" of type ", Quoted(type));
    if (!type.empty() && FindHfType(type) == nullptr) {
      return absl::StrCat("it holds a language model", of_type, " in ", key, ", which is not among ",
                          KnownHfTypes(/*trained=*/false, "and"));
    }
    return absl::StrCat("it holds a language model", of_type, " in ", key, " beside other parts; save that alone: jq .", key,
                        " FILE > config.json", type.empty() ? ", and add its model_type" : "");
  }
  if (!TypeOf(json).empty()) return "";
  for (const auto& [key, what] : kOtherFiles) {
    if (json.contains(key)) return absl::StrCat(what, "; give the config.json of the model");
  }
  return "";
}

}  // namespace motley
