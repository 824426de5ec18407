// motley data setup, prepare, show: starts the Python program of deploy/data, which takes this process's place.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddData(CLI::App& app);

}  // namespace motley::client
