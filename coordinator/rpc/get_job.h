// GetJob.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// NOT_FOUND: no such job; with memory also: it has no plan yet.
absl::Status GetJob(Core& core, const v1::GetJobRequest& request, v1::GetJobResponse* response);

}  // namespace motley::coordinator
