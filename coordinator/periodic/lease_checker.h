// Ends the sessions of workers that have been silent for longer than their lease, and forgets nodes lost long ago.
#pragma once

#include "coordinator/core/core.h"

namespace motley::coordinator {

void CheckLeases(Core& core);

}  // namespace motley::coordinator
