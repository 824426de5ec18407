// ResumeJob: an ended job is queued again, with changed settings; durable when it returns.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// NOT_FOUND: no such job. INVALID_ARGUMENT, FAILED_PRECONDITION: see state/resume.h; FAILED_PRECONDITION also when a job that
// has not ended is to have other settings.
absl::Status ResumeJob(Core& core, const v1::ResumeJobRequest& request, v1::ResumeJobResponse* response);

}  // namespace motley::coordinator
