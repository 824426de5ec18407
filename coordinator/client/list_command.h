// motley list: all jobs, newest last.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddList(CLI::App& app);

}  // namespace motley::client
