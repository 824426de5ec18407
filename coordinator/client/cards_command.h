// motley cards [NAME]: the device table.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddCards(CLI::App& app);

}  // namespace motley::client
