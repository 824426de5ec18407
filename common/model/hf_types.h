// Which model_types of config.json are read, and what transformers takes for the keys that one of them leaves out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/model/model_family.h"

namespace motley {

// Which windows of attention transformers takes from a type's config, and of which layers.
enum class WindowKeys {
  kNone,          // it reads no key of them
  kAll,           // sliding_window, of all layers; none where it is left out
  kAllDefault,    // likewise; 4,096 where it is left out: null alone means none
  kSwitched,      // 4,096 where it is left out, and only where use_sliding_window is true: of the layers that layer_types says,
                  // else of those from max_window_layers on
  kPattern,       // likewise without a switch: else of all but each sliding_window_pattern-th. null is an error there
  kSwitchedSize,  // only where both are there: of the layers that layer_types says, else of those without rotary positions
};

// Of the keys that are left out; those of the type's class in transformers.
struct HfDefaults {
  int64_t vocab, hidden, layers, heads;
  int64_t kv_heads;      // 0: as many as heads
  int64_t head_dim;      // 0: the hidden size by the heads
  int64_t intermediate;  // 0: four times the hidden size
  int64_t positions;
  double norm_eps;
  bool tied;
  double rope_theta = 10000.0;
  double local_theta = 10000.0;  // of layers with a window, where those have their own
  int64_t query_scalar = 0;      // 0: the head's size
};

struct HfType {
  std::string_view name;
  ModelFamily family;  // whose layers price it
  WindowKeys window;
  HfDefaults left_out;
  std::string_view difference;         // from the family as the engine computes it; empty: none, so it can be trained
  std::string_view effect;             // of that difference on a price
  std::string_view architecture = "";  // where the family's own name is another
};

// nullptr: not one that is read.
const HfType* FindHfType(std::string_view name);
// The one of the family's types that may have windows; nullptr: none.
const HfType* WindowedTypeOf(ModelFamily family);
// The names as a sentence has them: "gpt2", "llama" or "qwen2". `trained`: those that the engine trains.
std::string KnownHfTypes(bool trained, std::string_view last);
// What keeps another type out, for those that people ask for; empty: nobody did.
std::string_view DifferenceOfForeignType(std::string_view name);
bool IsMixtureOfExperts(const std::string& type);

}  // namespace motley
