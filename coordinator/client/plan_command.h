// motley plan JOB [--explain] [--program] [--trace FILE].
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddPlan(CLI::App& app);

}  // namespace motley::client
