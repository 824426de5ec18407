// Tells systemd that the loop turns (WATCHDOG=1). Without systemd it does nothing.
#pragma once

#include "coordinator/core.h"

namespace motley::coordinator {

void PetWatchdog(Core& core);

}  // namespace motley::coordinator
