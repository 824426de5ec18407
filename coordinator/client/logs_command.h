// motley logs JOB [-f].
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddLogs(CLI::App& app);

}  // namespace motley::client
