// motley delete JOB [--wait].
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddDelete(CLI::App& app);

}  // namespace motley::client
