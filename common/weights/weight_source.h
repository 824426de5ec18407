// Where the parameters that a job begins with, or goes on from, come from: its own checkpoint, or a folder of HuggingFace's.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace motley {

// Not thread-safe.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // Elements [begin, end) of a unit's flat array of parameters (common/model/parameters.h), in the type of the job's state, into
  // `out`. Errors name the file, and the tensor where one is to blame.
  virtual absl::Status Read(int unit, int64_t begin, int64_t end, void* out) = 0;
};

}  // namespace motley
