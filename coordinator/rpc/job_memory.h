// Memory of a job's ranks for people: as planned, as measured in its newest step, and what is left.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "coordinator/state/job.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// Of the newest plan. Nothing is measured before that plan's first step; of a job that has ended it is the last. NOT_FOUND: it
// has no plan yet.
absl::Status AddMemory(const Core& core, const JobRecord& job, v1::GetJobResponse* response);

}  // namespace motley::coordinator
