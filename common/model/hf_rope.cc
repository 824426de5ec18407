#include "common/model/hf_rope.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/parse_json.h"
#include "common/base/some_names.h"

namespace motley {
namespace {

using Json = nlohmann::json;

constexpr const char* kTypeKeys[] = {"rope_type", "type"};  // the first one wins

// transformers has no default for the first three. The last one stands beside the object where that says so, and is the model's
// longest sequence where it is left out.
RopeScaling ReadLlama3Scaling(const HfReader& config, const HfReader& rope, int64_t max_positions) {
  constexpr char kOriginal[] = "original_max_position_embeddings";
  RopeScaling scaling;
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor"}) {
    if (!rope.Has(key)) rope.Wrong(key, "is missing");
  }
  scaling.factor = rope.Positive("factor", scaling.factor);
  scaling.low_freq_factor = rope.Positive("low_freq_factor", scaling.low_freq_factor);
  scaling.high_freq_factor = rope.Positive("high_freq_factor", scaling.high_freq_factor);
  scaling.original_max_positions = config.Has(kOriginal) ? config.Size(kOriginal) : rope.Size(kOriginal, max_positions);
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
    if (!inner.Has(type)) continue;
    if (rope.at(type) == "default") break;
    if (rope.at(type) == "llama3") {
      shape->rope_scaling = ReadLlama3Scaling(config, inner, shape->max_positions);
    } else {
      config.Untrained(absl::StrCat(key, " with ", type, " ", EchoJson(rope.at(type))),
                       " is not supported; use \"default\" or \"llama3\"", kNoProduct);
    }
    return;
  }
  CheckTypeIsSaid(config, key);
}

}  // namespace

// As transformers has it: a rope_scaling that is neither null nor empty stands for all of rope_parameters, and what is in there
// wins over what stands beside it.
void ReadRope(const HfReader& config, ModelShape* shape) {
  shape->rope_theta = config.Positive("rope_theta", shape->rope_theta);
  config.Only("partial_rotary_factor", {1.0}, kNoProduct);
  const bool scaled = config.Has("rope_scaling") && !(config.At("rope_scaling").is_object() && config.At("rope_scaling").empty());
  const char* const key = scaled ? "rope_scaling" : "rope_parameters";
  if (!config.Has(key)) return;
  if (!config.At(key).is_object()) return config.Wrong(key, "must be an object");
  ReadScaling(config, key, shape);
  const HfReader inner = config.Inner(key);
  inner.Only("partial_rotary_factor", {1.0}, kNoProduct);
  shape->rope_theta = inner.Positive("rope_theta", shape->rope_theta);
}

// As transformers has it: a theta in rope_parameters wins over the one beside it, and a rope_scaling that is not null over both.
double ReadRopeByWindow(const HfReader& config, double local_theta, ModelShape* shape) {
  constexpr char kBoth[] = "rope_parameters", kFull[] = "full_attention", kSliding[] = "sliding_attention";
  constexpr char kScaling[] = "rope_scaling", kTheta[] = "rope_theta";
  shape->rope_theta = config.Positive(kTheta, shape->rope_theta);
  local_theta = config.Positive("rope_local_base_freq", local_theta);
  const auto read = [shape, &kTheta](const HfReader& of, const char* key, double theta) {
    if (!of.Has(key)) return theta;
    if (!of.At(key).is_object()) return of.Wrong(key, "must be an object"), theta;
    ReadScaling(of, key, shape);
    of.Inner(key).Only("partial_rotary_factor", {1.0}, kNoProduct);
    return of.Inner(key).Positive(kTheta, theta);
  };
  if (config.Has(kBoth) && !config.At(kBoth).is_object()) {
    config.Wrong(kBoth, "must be an object");
  } else if (config.Has(kBoth)) {
    for (const char* flat : {kTheta, kTypeKeys[0], kTypeKeys[1]}) {
      if (config.Inner(kBoth).Has(flat)) {
        config.Wrong(kBoth, absl::StrCat("must have an object for ", kFull, " and one for ", kSliding, ", not ", flat));
      }
    }
    const HfReader both = config.Inner(kBoth);
    shape->rope_theta = read(both, kFull, shape->rope_theta);
    const RopeScaling of_full = shape->rope_scaling;
    local_theta = read(both, kSliding, local_theta);
    if (!(shape->rope_scaling == of_full)) {
      both.Untrained(kSliding, " is scaled, which the engine does for layers without a window alone", kNoProduct);
      shape->rope_scaling = of_full;
    }
  }
  shape->rope_theta = read(config, kScaling, shape->rope_theta);
  return local_theta;
}

}  // namespace motley
