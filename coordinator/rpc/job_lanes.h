// What the ranks of a job did in their newest step, and what they waited for.
#pragma once

#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// Nothing is added for a job that does not train.
void AddLanes(const Core& core, const JobRecord& job, v1::GetJobResponse* response);

}  // namespace motley::coordinator
