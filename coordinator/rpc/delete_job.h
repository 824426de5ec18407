// DeleteJob: an ended job is forgotten; durable when it returns. Its checkpoints are files of the nodes and stay.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// NOT_FOUND: no such job. FAILED_PRECONDITION: it has not ended.
absl::Status DeleteJob(Core& core, const v1::DeleteJobRequest& request, v1::DeleteJobResponse* response);

}  // namespace motley::coordinator
