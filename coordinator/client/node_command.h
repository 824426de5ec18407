// motley node token|tokens|revoke|forget|rotate-authority: who may be a node.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddNode(CLI::App& app);

}  // namespace motley::client
