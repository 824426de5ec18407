#include "planner/costs/motley_profile.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"

namespace motley::planner {
namespace {

using Json = nlohmann::json;

constexpr char kVersionKey[] = "motley_profile";
constexpr int64_t kMostBytes = int64_t{1} << 42;
constexpr int64_t kPartsVersion = 4;  // the first with halves of a backward and a part of a unit
constexpr int64_t kForwardWorkspaceVersion = 5;
constexpr int64_t kLoadVersion = 6;
constexpr double kMostOfLoad = 1e6;  // MHz, watts

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// A key that nobody reads is a mistake in writing one that somebody does.
absl::Status CheckKeys(const Json& json, const std::vector<std::string>& known, const std::string& path) {
  for (const auto& [key, value] : json.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string nearest = NearestWord(key, known);
    return Bad(path, ": unknown key ", Quoted(key), nearest.empty() ? "" : absl::StrCat("; did you mean ", Quoted(nearest), "?"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Word(const Json& json, const char* key, const std::string& path) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return Bad(path, ": ", key, " must be a word");
  return found->get<std::string>();
}

absl::StatusOr<std::vector<double>> Numbers(const Json& json, const char* key, const std::string& path) {
  const Json list = json.value(key, Json());
  if (!list.is_array()) return Bad(path, ".", key, ": must be a list of numbers");
  std::vector<double> numbers;
  for (const Json& value : list) {
    if (!value.is_number()) return Bad(path, ".", key, ": must be a list of numbers, has a ", value.type_name());
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

// A list of whole bytes beside `samples`; empty where it is absent.
absl::StatusOr<std::vector<int64_t>> Bytes(const Json& json, const char* key, size_t samples, const std::string& path) {
  std::vector<int64_t> bytes;
  if (!json.contains(key)) return bytes;
  const Json& list = json[key];
  if (!list.is_array() || list.size() != samples) {
    return Bad(path, ".", key, ": must be a list of as many numbers as samples, ", samples);
  }
  for (const Json& value : list) {
    if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > kMostBytes) {
      return Bad(path, ".", key, ": bytes must be whole numbers from 0 to ", kMostBytes);
    }
    if (!bytes.empty() && value.get<int64_t>() < bytes.back()) {
      return Bad(path, ".", key, ": more samples cannot need fewer bytes, ", value.get<int64_t>(), " after ", bytes.back());
    }
    bytes.push_back(value.get<int64_t>());
  }
  return bytes;
}

// Numbers that may be absent; then none.
absl::StatusOr<std::vector<double>> NumbersBeside(const Json& json, const char* key, size_t samples, const std::string& path) {
  if (!json.contains(key)) return std::vector<double>();
  MOTLEY_ASSIGN_OR_RETURN(std::vector<double> numbers, Numbers(json, key, path));
  if (numbers.size() == samples) return numbers;
  return Bad(path, ".", key, ": must be a list of as many numbers as samples, ", samples);
}

absl::Status ReadHalvesAndPart(const Json& json, const std::string& path, MeasuredSeries* series) {
  const size_t samples = series->samples.size();
  MOTLEY_ASSIGN_OR_RETURN(series->backward_input_seconds, NumbersBeside(json, "backward_input_seconds", samples, path));
  MOTLEY_ASSIGN_OR_RETURN(series->backward_weight_seconds, NumbersBeside(json, "backward_weight_seconds", samples, path));
  if (series->backward_input_seconds.empty() != series->backward_weight_seconds.empty()) {
    return Bad(path, ": backward_input_seconds and backward_weight_seconds are two halves; give both or neither");
  }
  MOTLEY_ASSIGN_OR_RETURN(series->part_forward_seconds, NumbersBeside(json, "part_forward_seconds", samples, path));
  MOTLEY_ASSIGN_OR_RETURN(series->part_backward_seconds, NumbersBeside(json, "part_backward_seconds", samples, path));
  const bool none = series->part_forward_seconds.empty();
  if (none != series->part_backward_seconds.empty() || none == json.contains("part")) {
    return Bad(path, ": part, part_forward_seconds and part_backward_seconds go together; give all or none");
  }
  if (none) return absl::OkStatus();
  const Json& part = json["part"];
  if (!part.is_number() || !(part.get<double>() > 0) || !(part.get<double>() < 1)) {
    return Bad(path, ".part: must be a number above 0 and below 1");
  }
  series->part = part.get<double>();
  return absl::OkStatus();
}

absl::StatusOr<MeasuredSeries> Lists(const Json& json, int64_t version, const std::string& path) {
  MeasuredSeries series;
  MOTLEY_ASSIGN_OR_RETURN(series.samples, Numbers(json, "samples", path));
  MOTLEY_ASSIGN_OR_RETURN(series.forward_seconds, Numbers(json, "forward_seconds", path));
  MOTLEY_ASSIGN_OR_RETURN(series.backward_seconds, Numbers(json, "backward_seconds", path));
  MOTLEY_ASSIGN_OR_RETURN(series.saved_bytes, Bytes(json, "saved_bytes", series.samples.size(), path));
  MOTLEY_ASSIGN_OR_RETURN(series.workspace_bytes, Bytes(json, "workspace_bytes", series.samples.size(), path));
  if (version >= kForwardWorkspaceVersion) {
    MOTLEY_ASSIGN_OR_RETURN(series.forward_workspace_bytes, Bytes(json, "forward_workspace_bytes", series.samples.size(), path));
  }
  if (version >= kPartsVersion) MOTLEY_RETURN_IF_ERROR(ReadHalvesAndPart(json, path, &series));
  return series;
}

std::vector<std::string> SeriesKeys(int64_t version) {
  std::vector<std::string> keys = {"samples", "forward_seconds", "backward_seconds", "saved_bytes", "workspace_bytes"};
  if (version < kPartsVersion) return keys;
  keys.insert(keys.end(),
              {"backward_input_seconds", "backward_weight_seconds", "part", "part_forward_seconds", "part_backward_seconds"});
  if (version >= kForwardWorkspaceVersion) keys.push_back("forward_workspace_bytes");
  return keys;
}

absl::StatusOr<MeasuredSeries> Series(const Json& json, int64_t version, const std::string& path) {
  if (!json.is_object()) return Bad(path, ": must be an object with samples, forward_seconds and backward_seconds");
  MOTLEY_RETURN_IF_ERROR(CheckKeys(json, SeriesKeys(version), path));
  return Lists(json, version, path);
}

absl::StatusOr<double> Seconds(const Json& json, const char* key, const std::string& path) {
  const Json value = json.value(key, Json());
  if (!value.is_number() || !(value.get<double>() >= 0) || !std::isfinite(value.get<double>())) {
    return Bad(path, ".", key, ": must be a number of seconds, not below 0");
  }
  return value.get<double>();
}

absl::StatusOr<CardLoad> ReadLoad(const Json& json, const std::string& path) {
  if (!json.is_object()) return Bad(path, ": must be an object");
  const std::vector<std::string> keys = {"sm_clock_mhz",   "watts",          "power_limit_watts",
                                         "at_power_limit", "slowed_by_heat", "slowed_by_hardware"};
  MOTLEY_RETURN_IF_ERROR(CheckKeys(json, keys, path));
  for (const auto& [key, value] : json.items()) {
    const bool is_number = std::find(keys.begin(), keys.begin() + 3, key) != keys.begin() + 3;
    if (!is_number && !value.is_boolean()) return Bad(path, ".", key, ": must be true or false");
    if (!is_number) continue;
    if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > kMostOfLoad) {
      return Bad(path, ".", key, ": must be a number from 0 to ", kMostOfLoad);
    }
  }
  CardLoad load;
  load.sm_clock_mhz = static_cast<int64_t>(json.value("sm_clock_mhz", 0.0));
  load.watts = json.value("watts", 0.0);
  load.power_limit_watts = static_cast<int64_t>(json.value("power_limit_watts", 0.0));
  load.at_power_limit = json.value("at_power_limit", false);
  load.slowed_by_heat = json.value("slowed_by_heat", false);
  load.slowed_by_hardware = json.value("slowed_by_hardware", false);
  return load;
}

Json ToJson(const CardLoad& load) {
  return {{"sm_clock_mhz", load.sm_clock_mhz},           {"watts", load.watts},
          {"power_limit_watts", load.power_limit_watts}, {"at_power_limit", load.at_power_limit},
          {"slowed_by_heat", load.slowed_by_heat},       {"slowed_by_hardware", load.slowed_by_hardware}};
}

// What version 1 did not have.
absl::Status ReadExtras(const Json& json, int64_t version, const std::string& path, MeasuredCard* card) {
  if (json.contains("embedding")) {
    MOTLEY_ASSIGN_OR_RETURN(card->embedding, Series(json["embedding"], version, path + ".embedding"));
  }
  if (json.contains("head")) {
    MOTLEY_ASSIGN_OR_RETURN(card->head, Series(json["head"], version, path + ".head"));
  }
  if (json.contains("optimizer")) {
    const Json& optimizer = json["optimizer"];
    const std::string at = path + ".optimizer";
    if (!optimizer.is_object()) return Bad(at, ": must be an object with seconds_per_element and launch_seconds");
    MOTLEY_RETURN_IF_ERROR(CheckKeys(optimizer, {"seconds_per_element", "launch_seconds"}, at));
    card->optimizer.emplace();
    MOTLEY_ASSIGN_OR_RETURN(card->optimizer->seconds_per_element, Seconds(optimizer, "seconds_per_element", at));
    MOTLEY_ASSIGN_OR_RETURN(card->optimizer->launch_seconds, Seconds(optimizer, "launch_seconds", at));
  }
  if (json.contains("context_bytes")) {
    const Json& bytes = json["context_bytes"];
    if (!bytes.is_number_integer() || bytes.get<int64_t>() < 0 || bytes.get<int64_t>() > kMostBytes) {
      return Bad(path, ".context_bytes: must be a whole number from 0 to ", kMostBytes);
    }
    card->context_bytes = bytes.get<int64_t>();
  }
  if (json.contains("load")) {
    MOTLEY_ASSIGN_OR_RETURN(card->load, ReadLoad(json["load"], path + ".load"));
  }
  return absl::OkStatus();
}

absl::StatusOr<MeasuredCard> ReadCard(const Json& json, int64_t version, const std::string& path) {
  if (!json.is_object()) return Bad(path, ": must be an object");
  // Version 1 has no place for what its writers wanted to add for people.
  const bool with_extras = version > 1;
  if (with_extras) {
    std::vector<std::string> keys = SeriesKeys(version);
    keys.insert(keys.end(), {"model", "card", "dtype", "seq_len", "embedding", "head", "optimizer", "context_bytes"});
    if (version >= kLoadVersion) keys.push_back("load");
    MOTLEY_RETURN_IF_ERROR(CheckKeys(json, keys, path));
  }
  MeasuredCard card;
  MOTLEY_ASSIGN_OR_RETURN(card.model, Word(json, "model", path));
  MOTLEY_ASSIGN_OR_RETURN(card.card, Word(json, "card", path));
  MOTLEY_ASSIGN_OR_RETURN(const std::string dtype, Word(json, "dtype", path));
  const absl::StatusOr<DType> known = ParseDType(dtype.substr(0, 40));
  if (!known.ok()) return Bad(path, ": ", known.status().message());
  card.dtype = *known;
  const Json seq_len = json.value("seq_len", Json());
  if (!seq_len.is_number_integer() || seq_len.get<int64_t>() < 1 || seq_len.get<int64_t>() > kMostTokens) {
    return Bad(path, ": seq_len must be a number of tokens");
  }
  card.seq_len = seq_len.get<int64_t>();
  MOTLEY_ASSIGN_OR_RETURN(card.layer, Lists(json, version, path));
  if (with_extras) MOTLEY_RETURN_IF_ERROR(ReadExtras(json, version, path, &card));
  return card;
}

Json ToJson(const MeasuredSeries& series) {
  Json json = {
      {"samples", series.samples}, {"forward_seconds", series.forward_seconds}, {"backward_seconds", series.backward_seconds}};
  if (!series.saved_bytes.empty()) json["saved_bytes"] = series.saved_bytes;
  if (!series.workspace_bytes.empty()) json["workspace_bytes"] = series.workspace_bytes;
  if (!series.forward_workspace_bytes.empty()) json["forward_workspace_bytes"] = series.forward_workspace_bytes;
  if (!series.backward_input_seconds.empty()) {
    json["backward_input_seconds"] = series.backward_input_seconds;
    json["backward_weight_seconds"] = series.backward_weight_seconds;
  }
  if (series.part > 0) {
    json["part"] = series.part;
    json["part_forward_seconds"] = series.part_forward_seconds;
    json["part_backward_seconds"] = series.part_backward_seconds;
  }
  return json;
}

Json ToJson(const MeasuredCard& card) {
  Json json = ToJson(card.layer);
  json["model"] = card.model;
  json["card"] = card.card;
  json["seq_len"] = card.seq_len;
  json["dtype"] = std::string(DTypeName(card.dtype));
  if (card.embedding) json["embedding"] = ToJson(*card.embedding);
  if (card.head) json["head"] = ToJson(*card.head);
  if (card.optimizer) {
    json["optimizer"] = {{"seconds_per_element", card.optimizer->seconds_per_element},
                         {"launch_seconds", card.optimizer->launch_seconds}};
  }
  if (card.context_bytes) json["context_bytes"] = *card.context_bytes;
  if (card.load != CardLoad()) json["load"] = ToJson(card.load);
  return json;
}

}  // namespace

bool IsMotleyProfile(const Json& root) { return root.contains(kVersionKey); }

absl::StatusOr<MotleyProfile> ReadMotleyProfile(const Json& root, const std::string& source) {
  const Json version = root.value(kVersionKey, Json());
  if (!version.is_number_integer() || version.get<int64_t>() < 1 || version.get<int64_t>() > kMotleyProfileVersion) {
    return Bad(source, ": ", kVersionKey, " must be 1 to ", kMotleyProfileVersion,
               ", the versions this program reads; measure or save the profile again with this version");
  }
  if (version > 1) MOTLEY_RETURN_IF_ERROR(CheckKeys(root, {kVersionKey, "source", "models", "layers"}, source));
  MotleyProfile profile;
  if (const Json words = root.value("source", Json()); words.is_string()) profile.source = words.get<std::string>();
  const Json models = root.value("models", Json::object());
  if (!models.is_object()) return Bad(source, ": models must be an object of config.json by name");
  for (const auto& [name, config] : models.items()) {
    // The shape alone tells models apart: what the engine would not train may be in it.
    MOTLEY_ASSIGN_OR_RETURN(const HfModel model, ParseHfShape(config.dump(), absl::StrCat(source, ": models.", name)));
    profile.models[name] = model.shape;
  }
  const Json layers = root.value("layers", Json());
  if (!layers.is_array()) return Bad(source, ": layers must be a list");
  for (size_t i = 0; i < layers.size(); ++i) {
    MOTLEY_ASSIGN_OR_RETURN(MeasuredCard card,
                            ReadCard(layers[i], version.get<int64_t>(), absl::StrCat(source, ": layers[", i, "]")));
    profile.cards.push_back(std::move(card));
  }
  return profile;
}

std::string ToJson(const MotleyProfile& profile) {
  Json json{{kVersionKey, kMotleyProfileVersion}, {"source", profile.source}, {"layers", Json::array()}};
  for (const auto& [name, shape] : profile.models) {
    json["models"][name] = Json::parse(ToHfConfig(shape), nullptr, /*allow_exceptions=*/false);
  }
  for (const MeasuredCard& card : profile.cards) json["layers"].push_back(ToJson(card));
  return absl::StrCat(json.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace), "\n");
}

}  // namespace motley::planner
