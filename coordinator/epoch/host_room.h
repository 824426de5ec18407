// A host that has less memory than a plan keeps there, as its worker found before ranks started.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/core/core.h"

namespace motley::coordinator {

// Plans get no more than `bytes` of the node from now on, until its worker says anew what it offers. The job is planned again
// with that; an event says why. Of the epoch that runs.
void OnHostRoom(Core& core, const RankReport& report, int64_t bytes);

}  // namespace motley::coordinator
