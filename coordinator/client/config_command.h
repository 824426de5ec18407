// motley config check FILE; motley config show FILE. Needs no coordinator.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddConfig(CLI::App& app);

}  // namespace motley::client
