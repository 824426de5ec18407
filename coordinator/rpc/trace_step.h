// TraceStep: when every rank ran every instruction in one step.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"
#include "coordinator/rpc/stream_source.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

class TraceStepSource : public StreamSource<v1::TraceStepUpdate> {
 public:
  explicit TraceStepSource(const v1::TraceStepRequest& request) : job_(request.job_id()), step_(request.step()) {}
  // NOT_FOUND: no such job, or the step is over and not kept. INVALID_ARGUMENT: the job has no such step. FAILED_PRECONDITION: it
  // does not train now. ABORTED: it was planned again meanwhile. DEADLINE_EXCEEDED: ranks that do not answer.
  absl::StatusOr<Pull> Next(Core& core, v1::TraceStepUpdate* out) override;
  Topic topic() const override { return {NewsKind::kUpdates, job_}; }

 private:
  absl::Status Check(const Core& core, const JobRecord& job);
  // Told once.
  Pull Say(std::string doing, v1::TraceStepUpdate* out);

  const JobId job_;
  int64_t step_;  // 0: the newest, as soon as there is one
  Epoch epoch_;   // of the run when this was asked
  std::string said_;
  size_t sent_ = 0;  // ranks
};

}  // namespace motley::coordinator
