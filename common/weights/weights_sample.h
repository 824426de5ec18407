// By what nodes compare the folders of HuggingFace's that they hold: a base and what was tuned from it have equal names, shapes
// and sizes, so contents count; all of them would take minutes.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/weights/weights_folder.h"

namespace motley {

struct WeightsSample {
  std::string digest;     // SHA-256 (hex) of config.json, the index, each tensor's entry, and its first and last bytes
  std::string tokenizer;  // of tokenizer.json; empty: there is none
};
inline constexpr int64_t kSampledBytes = 4096;  // of each end of a tensor

// `folder`: what FindWeightsFolder gave. Errors: those of OpenWeightsFolder, and of reading.
absl::StatusOr<WeightsSample> SampleWeights(const std::string& folder, const OpenPath& open);

}  // namespace motley
