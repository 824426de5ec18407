// TailLogs: the lines that are kept; with follow the stream stays open until the job is over.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"
#include "coordinator/rpc/stream_source.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

class TailLogsSource : public StreamSource<v1::LogLine> {
 public:
  explicit TailLogsSource(const v1::TailLogsRequest& request)
      : job_(request.job_id()), follow_(request.follow()), after_(request.after_sequence()) {}
  // NOT_FOUND: no such job.
  absl::StatusOr<Pull> Next(Core& core, v1::LogLine* out) override;
  Topic topic() const override { return {NewsKind::kLogs, job_}; }

 private:
  const JobId job_;
  const bool follow_;
  int64_t after_;
};

}  // namespace motley::coordinator
