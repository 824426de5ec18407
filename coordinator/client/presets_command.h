// motley clusters [NAME], motley models [NAME]: what the other offline commands take by name.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddClusters(CLI::App& app);
Action AddModels(CLI::App& app);

}  // namespace motley::client
