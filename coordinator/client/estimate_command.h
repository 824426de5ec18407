// motley estimate --cluster C --model M: does it fit, where do the bytes go, what is the most that fits.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddEstimate(CLI::App& app);

}  // namespace motley::client
