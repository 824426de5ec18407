// SubmitJob: validates, makes the job durable, then replies.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// INVALID_ARGUMENT names the field; ALREADY_EXISTS: the id is used with another body. The same id and body again gives the job.
absl::Status SubmitJob(Core& core, const v1::SubmitJobRequest& request, v1::SubmitJobResponse* response);

}  // namespace motley::coordinator
