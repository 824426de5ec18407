// Where inputs of units wait in a rank's block of host memory: as many slots as wait at once, each as large as the largest input.
// Who plans the block and who copies into it ask the same. The copy lane's order makes a slot free again: what is offloaded later
// comes behind the prefetch that emptied it.
#pragma once

#include <cstdint>
#include <vector>

#include "common/program/program.h"

namespace motley {

struct HostSlots {
  int32_t count = 0;         // inputs of one unit and one microbatch
  int64_t most_samples = 0;  // of any that waits
  std::vector<int32_t>
      of;  // by instruction: the first slot that an offload_activation fills or a prefetch_activation empties, else -1
};

// `program` passes Validate.
HostSlots AssignHostSlots(const Program& program);

}  // namespace motley
