// StopJob: durable when it returns; the epoch driver saves and ends the job.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// NOT_FOUND: no such job. A job that is over stays as it is.
absl::Status StopJob(Core& core, const v1::StopJobRequest& request, v1::StopJobResponse* response);

}  // namespace motley::coordinator
