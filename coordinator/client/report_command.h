#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddReport(CLI::App& app);

}  // namespace motley::client
