// The job that a request names.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// NOT_FOUND names the id.
absl::StatusOr<JobRecord*> FindJob(Core& core, const std::string& id);

}  // namespace motley::coordinator
