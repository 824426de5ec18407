// ListFiles: what lies on the nodes' disks of jobs, also of deleted ones.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"
#include "coordinator/rpc/stream_source.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

class ListFilesSource : public StreamSource<v1::ListFilesUpdate> {
 public:
  explicit ListFilesSource(const v1::ListFilesRequest& request) : job_(request.job_id()) {}
  absl::StatusOr<Pull> Next(Core& core, v1::ListFilesUpdate* out) override;
  Topic topic() const override { return {NewsKind::kExamination, JobId()}; }

 private:
  const JobId job_;
  std::shared_ptr<const int> ticket_;  // the look ends with this
  bool done_ = false;
};

}  // namespace motley::coordinator
