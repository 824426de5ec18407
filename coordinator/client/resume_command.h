// motley resume JOB [--wait].
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddResume(CLI::App& app);

}  // namespace motley::client
