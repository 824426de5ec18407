// motley submit FILE [--set section.key=value]... [--job-id ID] [--wait].
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddSubmit(CLI::App& app);

}  // namespace motley::client
