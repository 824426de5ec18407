// What the command line says of itself: `motley help`, and for packages `motley man` and `motley completion`.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddHelp(CLI::App& app);
Action AddMan(CLI::App& app);         // hidden
Action AddCompletion(CLI::App& app);  // hidden

}  // namespace motley::client
