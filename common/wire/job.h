// JobConfig <-> JobSpec. Field names are the same on both sides and in the job file.
#pragma once

#include "common/job/job.h"
#include "proto/motley/v1/job.pb.h"

namespace motley::wire {

// Every field is set explicitly, so that serialising the result gives one canonical body per configuration.
v1::JobSpec ToProto(const JobConfig& config);
// A field that is absent has its documented default, as in the job file; one that is present, zero included, counts. Cannot fail:
// ranges are Validate's business. With `config`, what is absent stays as it is there.
JobConfig FromProto(const v1::JobSpec& spec, JobConfig config = {});

}  // namespace motley::wire
