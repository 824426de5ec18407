// motley metrics JOB [-w]: step records.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddMetrics(CLI::App& app);

}  // namespace motley::client
