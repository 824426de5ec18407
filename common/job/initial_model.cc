#include "common/job/initial_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/parse_json.h"
#include "common/base/some_names.h"
#include "common/base/status_macros.h"
#include "common/weights/weights_folder.h"

namespace motley {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostKeys = 3;  // that an error names

// In the words of a config.json, the type of the model first: what else is unlike follows from another one.
std::string WhatDiffers(const ModelShape& held, const ModelShape& said) {
  const Json there = Json::parse(ToHfConfig(held)), here = Json::parse(ToHfConfig(said));
  std::vector<std::string> keys;
  for (const auto& [key, value] : there.items()) {
    if (here.value(key, Json()) != value) keys.push_back(key);
  }
  if (const auto type = std::find(keys.begin(), keys.end(), "model_type"); type != keys.end()) keys = {*type};
  std::vector<std::string> texts;
  for (const std::string& key : keys) {
    texts.push_back(absl::StrCat(key, " ", EchoJson(there.at(key)), " and not ", EchoJson(here.value(key, Json()))));
  }
  return SomeNames(texts, kMostKeys);
}

}  // namespace

absl::StatusOr<InitialModel> ReadInitialModel(const std::string& initial) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string folder, FindWeightsFolder(initial, OpenAnywhere));
  if (folder.empty()) return InitialModel();
  absl::StatusOr<std::string> text = ReadModelConfig(folder, OpenAnywhere);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  return InitialModel{absl::StrCat(folder, "/", kModelConfigName), *std::move(text)};
}

std::string WhyOtherModel(const InitialModel& initial, const ModelShape& said, int64_t seq_len) {
  const auto held = ParseHfConfig(initial.config_json, initial.config, seq_len);
  if (!held.ok()) return std::string(held.status().message());
  if (SameModel(*held, said, seq_len)) return "";
  const std::string differs = WhatDiffers(*held, said);
  return absl::StrCat(initial.config, " is of another model, with ", ModelWords(*held), ", than the job's [model], with ",
                      ModelWords(said), differs.empty() ? "" : ": it has ", differs,
                      "; leave out [model], which is the folder's then");
}

}  // namespace motley
