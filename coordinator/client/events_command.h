// motley events [JOB] [-f].
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddEvents(CLI::App& app);

}  // namespace motley::client
