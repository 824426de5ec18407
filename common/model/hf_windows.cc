#include "common/model/hf_windows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/parse_json.h"

namespace motley {
namespace {

using Json = nlohmann::json;

constexpr char kSizeKey[] = "sliding_window", kSwitchKey[] = "use_sliding_window", kTypesKey[] = "layer_types";
constexpr char kFromKey[] = "max_window_layers", kPatternKey[] = "sliding_window_pattern";
constexpr char kSliding[] = "sliding_attention", kFull[] = "full_attention";
constexpr int64_t kDefaultWindow = 4096;
constexpr int64_t kDefaultFirstLayer = 28;  // of max_window_layers
constexpr int64_t kDefaultPattern = 6;      // of layers, the last of which has no window
constexpr char kWindowEffect[] =
    "attention is priced over all earlier tokens, too much where sequences are longer than the window";

struct Size {
  int64_t tokens = 0;  // 0: none
  bool left_out = false;
};

Size Said(const HfReader& config, int64_t left_out) {
  if (config.Has(kSizeKey)) return {config.Size(kSizeKey)};
  if (left_out == 0 || config.Given(kSizeKey)) return {};
  return {left_out, true};
}

Size SizeOf(const HfReader& config, WindowKeys keys) {
  switch (keys) {
    case WindowKeys::kNone:
      return config.Flag(kSwitchKey, true) ? Said(config, 0) : Size();
    case WindowKeys::kAll:
      return Said(config, 0);
    case WindowKeys::kAllDefault:
      return Said(config, kDefaultWindow);
    case WindowKeys::kPattern:
      if (config.Given(kSizeKey) && !config.Has(kSizeKey)) config.Wrong(kSizeKey, "must be a number of tokens, got null");
      return Said(config, kDefaultWindow);
    case WindowKeys::kSwitched:
      return config.Flag(kSwitchKey, false) ? Said(config, kDefaultWindow) : Size();
    case WindowKeys::kSwitchedSize:
      return config.Flag(kSwitchKey, false) ? Said(config, 0) : Size();
  }
  std::abort();
}

void RefuseTypes(const HfReader& config, const std::string& type, const std::string& why) {
  config.Untrained(absl::StrCat(kTypesKey, " with ", type), why, kWindowEffect);
}

// Whether a type's layers are what layer_types says.
bool ReadsTypes(WindowKeys keys) {
  return keys == WindowKeys::kSwitched || keys == WindowKeys::kSwitchedSize || keys == WindowKeys::kPattern;
}

// Of each layer whether it has the window.
std::vector<bool> LayersOf(const HfReader& config, WindowKeys keys, const ModelShape& shape) {
  std::vector<bool> layers(static_cast<size_t>(shape.num_layers), true);
  if (ReadsTypes(keys) && config.Has(kTypesKey)) {
    for (size_t i = 0; i < layers.size(); ++i) layers[i] = config.At(kTypesKey)[i] == kSliding;
  } else if (keys == WindowKeys::kSwitched) {
    const int64_t first = config.Has(kFromKey) && config.At(kFromKey) == 0 ? 0 : config.Size(kFromKey, kDefaultFirstLayer);
    for (size_t i = 0; i < layers.size(); ++i) layers[i] = static_cast<int64_t>(i) >= first;
  } else if (keys == WindowKeys::kPattern) {
    const int64_t pattern = config.Size(kPatternKey, kDefaultPattern);
    for (size_t i = 0; i < layers.size(); ++i) layers[i] = pattern > 0 && (static_cast<int64_t>(i) + 1) % pattern != 0;
  } else if (keys == WindowKeys::kSwitchedSize) {
    for (size_t i = 0; i < layers.size(); ++i) layers[i] = !shape.KindOf(static_cast<int64_t>(i)).rotary;
  }
  return layers;
}

// Whether what layer_types says can be taken; what cannot is said.
bool CheckTypes(const HfReader& config, WindowKeys keys, const Size& size, bool matters, const ModelShape& shape) {
  if (!config.Has(kTypesKey)) return true;
  const Json& types = config.At(kTypesKey);
  if (!types.is_array()) {
    config.Wrong(kTypesKey, absl::StrCat("must be an array, got ", EchoJson(types)));
    return false;
  }
  for (const Json& type : types) {
    const bool sliding = type == kSliding;
    if (type != kFull && !(sliding && size.tokens != 0)) {
      RefuseTypes(config, EchoJson(type),
                  sliding ? ": how large the window is says sliding_window, which is missing"
                          : ": the engine has attention over all earlier tokens and over a window of the newest ones alone");
      return false;
    }
    if (!sliding && matters && !ReadsTypes(keys)) {
      RefuseTypes(config, EchoJson(type), ", which transformers does not read of this type: every layer has the window there");
      return false;
    }
  }
  if (!ReadsTypes(keys) || static_cast<int64_t>(types.size()) == shape.num_layers) return true;
  config.Wrong(kTypesKey, absl::StrCat("must have one for each of the ", shape.num_layers, " layers, got ", types.size()));
  return false;
}

}  // namespace

void ReadWindows(const HfReader& config, WindowKeys keys, int64_t seq_len, ModelShape* shape) {
  const Size size = SizeOf(config, keys);
  const bool matters = size.tokens != 0 && (seq_len == 0 || seq_len > size.tokens);
  const std::string subject =
      absl::StrCat(kSizeKey, " ", size.tokens, size.left_out ? ", which it is where the key is left out" : "");
  if (matters && keys == WindowKeys::kNone) {
    config.Untrained(subject,
                     absl::StrCat(": attention over a window of the newest tokens is nothing that transformers reads of "
                                  "this type; set training.seq_len to at most ",
                                  size.tokens, ", or use null here"),
                     kWindowEffect, absl::StrCat("the engine trains it with sequences of at most ", size.tokens, " tokens"));
  }
  if (!CheckTypes(config, keys, size, matters, *shape)) return;
  if (size.tokens == 0 || keys == WindowKeys::kNone) return;
  const std::vector<bool> layers = LayersOf(config, keys, *shape);
  if (std::find(layers.begin(), layers.end(), true) == layers.end()) return;
  if (matters) config.Noted(subject, kWindowEffect, kWindowEffect);
  shape->layer_kinds.resize(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) shape->layer_kinds[i].window = layers[i] ? size.tokens : 0;
}

void WriteWindows(const ModelShape& shape, nlohmann::json* json) {
  Json& j = *json;
  Json types = Json::array();
  int64_t window = 0, first = shape.num_layers;
  for (int64_t layer = shape.num_layers; layer-- > 0;) {
    const int64_t of_layer = shape.KindOf(layer).window;
    if (of_layer != 0) window = of_layer, first = layer;
  }
  const HfType* const type = WindowedTypeOf(shape.family);
  if (type == nullptr || (window == 0 && type->window != WindowKeys::kPattern)) return;  // left out it means none there
  for (int64_t layer = 0; layer < shape.num_layers; ++layer) {
    types.push_back(shape.KindOf(layer).window == 0 ? kFull : kSliding);
  }
  j["model_type"] = type->name;
  if (!type->architecture.empty()) j["architectures"] = {type->architecture};
  if (window != 0) j[kSizeKey] = window;
  switch (type->window) {
    case WindowKeys::kNone:
    case WindowKeys::kAll:
    case WindowKeys::kAllDefault:
      break;
    case WindowKeys::kPattern:
      j[kTypesKey] = std::move(types);
      break;
    case WindowKeys::kSwitched:
      j[kFromKey] = first;  // what versions read that know no layer_types
      [[fallthrough]];
    case WindowKeys::kSwitchedSize:
      j[kSwitchKey] = true;
      j[kTypesKey] = std::move(types);
      break;
  }
}

}  // namespace motley
