#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddOpen(CLI::App& app);

}  // namespace motley::client
