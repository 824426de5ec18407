// motley files: what lies on the nodes' disks, of jobs and of deleted ones.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddFiles(CLI::App& app);

}  // namespace motley::client
