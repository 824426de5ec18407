// Where inputs of units wait in a rank's block of host memory: as many slots as wait at once, each as large as the largest input.
// Who plans the block and who copies into it ask the same. The copy lane's order makes a slot free again: what is offloaded later
// comes behind the prefetch that emptied it.
#pragma once

#include <cstdint>
#include <vector>

#include "common/program/program.h"

namespace motley {

inline constexpr int64_t kHostSlotAlignment = 64;  // bytes: a cache line

struct HostSlots {
  // Of a slot, and of the block: they lie one behind the other. `sample_bytes`: of one sample's input.
  int64_t SlotBytes(int64_t sample_bytes) const {
    return (most_samples * sample_bytes + kHostSlotAlignment - 1) / kHostSlotAlignment * kHostSlotAlignment;
  }
  int64_t BlockBytes(int64_t sample_bytes) const { return count * SlotBytes(sample_bytes); }

  int32_t count = 0;         // inputs of one unit and one microbatch
  int64_t most_samples = 0;  // of any that waits
  std::vector<int32_t>
      of;  // by instruction: the first slot that an offload_activation fills or a prefetch_activation empties, else -1
};

// `program` passes Validate.
HostSlots AssignHostSlots(const Program& program);

}  // namespace motley
