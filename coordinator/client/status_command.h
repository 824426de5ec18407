// motley status JOB.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddStatus(CLI::App& app);

}  // namespace motley::client
