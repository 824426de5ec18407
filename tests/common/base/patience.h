// How long a test waits for what another thread or process does before it says that it did not come. No test fails by how long
// something took.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "absl/time/time.h"

namespace motley {

// Longer where MOTLEY_PATIENCE says that the machine is busy, as ./run test does.
inline absl::Duration Patience(absl::Duration wait) {
  const char* const factor = std::getenv("MOTLEY_PATIENCE");
  return factor == nullptr ? wait : wait * std::max(1.0, std::atof(factor));
}

}  // namespace motley
