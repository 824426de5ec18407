// Whether the coordinator takes a job of this description.
#pragma once

#include "absl/status/status.h"
#include "common/job/job.h"

namespace motley::coordinator {

// INVALID_ARGUMENT has a line for each thing that is wrong.
absl::Status CheckSpec(const JobConfig& config);

}  // namespace motley::coordinator
