// motley trace JOB: one measured step of a running job, beside the simulated one.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddTrace(CLI::App& app);

}  // namespace motley::client
