// motley stop JOB [--wait].
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddStop(CLI::App& app);

}  // namespace motley::client
