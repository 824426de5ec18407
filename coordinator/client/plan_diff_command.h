// motley plan diff A B: what changes, and which bytes would move.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

// Adds the subcommand; `*parsed` is it.
Action AddPlanDiff(CLI::App& plan, CLI::App** parsed);

}  // namespace motley::client
