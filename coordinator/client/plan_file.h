// A plan that somebody kept in a file.
#pragma once

#include <string>

#include "coordinator/client/exit_code.h"
#include "planner/plan/plan.h"

namespace motley::client {

// JSON: of `motley plan ... -o json`, or the whole answer of `motley plan JOB -o json`. Exit 66: not there; 65: not a plan, or
// only its text; the message begins with the path.
Exit LoadPlanFile(const std::string& path, planner::Plan* plan);

}  // namespace motley::client
