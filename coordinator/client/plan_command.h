// motley plan JOB: the plan of a live cluster. motley plan --cluster C --model M: without one. motley plan diff A B.
#pragma once

#include "coordinator/client/command.h"

namespace motley::client {

Action AddPlan(CLI::App& app);

}  // namespace motley::client
