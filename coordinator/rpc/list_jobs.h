// ListJobs: all jobs, oldest first, in pages.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

absl::Status ListJobs(Core& core, const v1::ListJobsRequest& request, v1::ListJobsResponse* response);

}  // namespace motley::coordinator
