// motley wait JOB [--wait].
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddWait(CLI::App& app);

}  // namespace motley::client
