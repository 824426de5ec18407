// motley nodes; motley nodes drain NAME; motley nodes undrain NAME.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddNodes(CLI::App& app);

}  // namespace motley::client
