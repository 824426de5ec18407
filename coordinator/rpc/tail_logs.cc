#include "coordinator/rpc/tail_logs.h"

#include "common/base/status_macros.h"
#include "coordinator/rpc/find_job.h"
#include "coordinator/rpc/views.h"

namespace motley::coordinator {

absl::StatusOr<Pull> TailLogsSource::Next(Core& core, v1::LogLine* out) {
  MOTLEY_ASSIGN_OR_RETURN(const JobRecord* job, FindJob(core, job_.value()));
  int64_t found = 0;
  const LogRecord* line = core.journal.Logs(job_).After(after_, &found);
  if (line == nullptr) return follow_ && !IsFinal(job->phase) ? Pull::kWait : Pull::kEnd;
  after_ = found;
  *out = View(*line);
  return Pull::kMessage;
}

}  // namespace motley::coordinator
