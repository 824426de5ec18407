// motley export JOB --out FOLDER: reads the checkpoint folder itself, so it runs where that folder is mounted.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddExport(CLI::App& app);

}  // namespace motley::client
