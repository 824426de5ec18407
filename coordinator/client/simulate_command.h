// motley simulate PLAN --cluster C --model M: the price of somebody's plan.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddSimulate(CLI::App& app);

}  // namespace motley::client
