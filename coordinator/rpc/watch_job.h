// WatchJob: the job, then what was and will be published of it, until it is over.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"
#include "coordinator/rpc/stream_source.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

class WatchJobSource : public StreamSource<v1::JobUpdate> {
 public:
  explicit WatchJobSource(const v1::WatchJobRequest& request)
      : job_(request.job_id()), cursor_(request.cursor()), snapshot_(request.snapshot()) {}
  // NOT_FOUND: no such job.
  absl::StatusOr<Pull> Next(Core& core, v1::JobUpdate* out) override;
  Topic topic() const override { return {NewsKind::kUpdates, job_}; }

 private:
  const JobId job_;
  int64_t cursor_;
  const bool snapshot_;  // ends after what is kept, instead of with the job
  bool greeted_ = false;
  v1::JobSpec brief_spec_;  // of every job state after the first
};

}  // namespace motley::coordinator
