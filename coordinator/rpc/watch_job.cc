#include "coordinator/rpc/watch_job.h"

#include <memory>

#include "common/base/status_macros.h"
#include "coordinator/rpc/find_job.h"
#include "coordinator/rpc/views.h"

namespace motley::coordinator {

absl::StatusOr<Pull> WatchJobSource::Next(Core& core, v1::JobUpdate* out) {
  MOTLEY_ASSIGN_OR_RETURN(const JobRecord* job, FindJob(core, job_.value()));
  const Ring<Update>& updates = core.journal.Updates(job_);
  if (!greeted_) {
    greeted_ = true;
    // A cursor from the future is a mistake of the client; it must not wait for it.
    if (cursor_ > updates.newest()) cursor_ = updates.newest();
    out->set_cursor(cursor_);
    *out->mutable_job() = View(core, *job);
    brief_spec_ = BriefSpec(job->config);
    return Pull::kMessage;
  }
  int64_t found = 0;
  const Update* update = updates.After(cursor_, &found);
  if (update == nullptr) return snapshot_ || IsFinal(job->phase) ? Pull::kEnd : Pull::kWait;
  cursor_ = found;
  out->set_cursor(found);
  if (const auto* state = std::get_if<std::shared_ptr<const JobStatus>>(update)) {
    *out->mutable_job() = View(**state);
    *out->mutable_job()->mutable_spec() = brief_spec_;
    out->mutable_job()->set_training_tokens(TrainingTokens(**state, job->config));
  } else if (const auto* step = std::get_if<StepStats>(update)) {
    *out->mutable_step() = View(*step);
  } else {
    *out->mutable_event() = View(std::get<EventRecord>(*update));
  }
  return Pull::kMessage;
}

}  // namespace motley::coordinator
