#include "common/model/hf_rope.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/parse_json.h"
#include "common/base/some_names.h"

namespace motley {
namespace {

using Json = nlohmann::json;

constexpr const char* kTypeKeys[] = {"rope_type", "type"};

// transformers has no default for any of these.
RopeScaling ReadLlama3Scaling(const HfReader& rope) {
  RopeScaling scaling;
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor"}) {
    if (!rope.Has(key)) rope.Wrong(key, "is missing");
  }
  scaling.factor = rope.Positive("factor", scaling.factor);
  scaling.low_freq_factor = rope.Positive("low_freq_factor", scaling.low_freq_factor);
  scaling.high_freq_factor = rope.Positive("high_freq_factor", scaling.high_freq_factor);
  scaling.original_max_positions = rope.Size("original_max_position_embeddings");
  if (scaling.factor < 1) rope.Wrong("factor", absl::StrCat("must be at least 1, got ", scaling.factor));
  if (scaling.high_freq_factor <= scaling.low_freq_factor) {
    rope.Wrong("high_freq_factor",
               absl::StrCat("must be above low_freq_factor ", scaling.low_freq_factor, ", got ", scaling.high_freq_factor));
  }
  return scaling.factor > 1 ? scaling : RopeScaling();
}

// What of the object is of a scaling: all but the base and the share of a head that turns.
std::vector<std::string> ScalingKeys(const HfReader& config, const char* key) {
  std::vector<std::string> keys;
  for (const auto& [name, value] : config.At(key).items()) {
    const bool type = name == kTypeKeys[0] || name == kTypeKeys[1];
    if (!type && name != "rope_theta" && name != "partial_rotary_factor" && !value.is_null()) keys.push_back(Echo(name));
  }
  return keys;
}

// transformers takes such a config for one without scaling; its author meant one.
void CheckTypeIsSaid(const HfReader& config, const char* key) {
  const HfReader inner = config.Inner(key);
  const bool said = inner.Has(kTypeKeys[0]) || inner.Has(kTypeKeys[1]);
  if (!said) {
    const std::vector<std::string> keys = ScalingKeys(config, key);
    if (keys.empty()) return;
    config.Wrong(key, absl::StrCat("has ", SomeNames(keys),
                                   " and no rope_type; add the rope_type that the model was trained with: \"llama3\", or "
                                   "\"default\" and nothing else for none"));
  } else if (inner.Has("factor") && inner.Positive("factor", 1) != 1) {
    config.Untrained(absl::StrCat(key, " with rope_type \"default\" and factor ", EchoJson(config.At(key).at("factor"))),
                     " says both: no scaling, and how much; remove one of them", kNoProduct);
  }
}

// Where it names a type of scaling.
void ReadScaling(const HfReader& config, const char* key, ModelShape* shape) {
  const Json& rope = config.At(key);
  const HfReader inner = config.Inner(key);
  for (const char* type : kTypeKeys) {
    if (!inner.Has(type) || rope.at(type) == "default") continue;
    if (rope.at(type) == "llama3") {
      shape->rope_scaling = ReadLlama3Scaling(inner);
    } else {
      config.Untrained(absl::StrCat(key, " with ", type, " ", EchoJson(rope.at(type))),
                       " is not supported; use \"default\" or \"llama3\"", kNoProduct);
    }
    return;  // some configs hold both, which say the same
  }
  CheckTypeIsSaid(config, key);
}

}  // namespace

void ReadRope(const HfReader& config, ModelShape* shape) {
  double theta = config.Positive("rope_theta", shape->rope_theta);
  config.Only("partial_rotary_factor", {1.0}, kNoProduct);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.Has(key)) continue;
    if (!config.At(key).is_object()) {
      config.Wrong(key, "must be an object");
      continue;
    }
    ReadScaling(config, key, shape);
    const HfReader inner = config.Inner(key);
    inner.Only("partial_rotary_factor", {1.0}, kNoProduct);
    theta = inner.Positive("rope_theta", theta);
  }
  shape->rope_theta = theta;
}

}  // namespace motley
