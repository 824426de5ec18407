// Applies what Decide says until there is nothing to do: the only place where a job's stage changes.
#pragma once

#include "coordinator/core/core.h"

namespace motley::coordinator {

void Drive(Core& core);

}  // namespace motley::coordinator
