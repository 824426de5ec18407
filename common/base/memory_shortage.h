// What a rank knew when its device had no memory left: the payload of an error of Fault::kMemory. A status carries it from where
// the allocation failed to who plans again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace motley {

enum class MemoryTier { kDevice, kHost };

struct MemoryShortage {
  MemoryTier tier = MemoryTier::kDevice;
  int64_t held_bytes = 0;     // when the allocation failed; 0: not known
  int64_t asked_bytes = 0;    // by that allocation; 0: not known
  int64_t planned_bytes = 0;  // the plan's peak for the rank; 0: not known
  std::string where;          // "step 3, instruction 17 (forward)", "a unit of the model, before the first step"
  friend bool operator==(const MemoryShortage&, const MemoryShortage&) = default;
};

// The same status as Fault::kMemory with what was known; OK stays OK.
absl::Status WithMemoryShortage(absl::Status status, const MemoryShortage& shortage);
// What WithMemoryShortage said; null: of any other error.
std::optional<MemoryShortage> MemoryShortageOf(const absl::Status& status);

}  // namespace motley
