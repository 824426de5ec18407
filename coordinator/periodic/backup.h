// Backs the store up every [backup] seconds into [backup] folder, beside the loop; not when nothing was committed since.
#pragma once

#include "coordinator/core/core.h"

namespace motley::coordinator {

void BackUp(Core& core);

}  // namespace motley::coordinator
