#include "coordinator/core/core.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"

namespace motley::coordinator {

JobRecord WithPhase(const JobRecord& job, JobPhase phase, const std::string& reason) {
  JobRecord next = job;
  next.phase = phase;
  next.reason = KeptText(reason, kMaxTextBytes);
  return next;
}

EventRecord PhaseEvent(const JobRecord& before, const JobRecord& after) {
  EventRecord event;
  event.job = after.id;
  event.kind = kind::kJobState;
  event.epoch = after.epoch;
  event.message = absl::StrCat(std::string(JobPhaseName(before.phase)), " -> ", std::string(JobPhaseName(after.phase)),
                               after.reason.empty() ? "" : ": ", after.reason);
  return event;
}

void Core::Send(const NodeName& node, CoordinatorCommand command) {
  auto it = links.find(node);
  if (it != links.end()) it->second->Send(std::move(command));
}

absl::Status Core::SetPhase(JobRecord& job, JobPhase phase, const std::string& reason) {
  if (job.phase == phase) {
    SetReason(job, reason);
    return absl::OkStatus();
  }
  Batch batch;
  batch.jobs.push_back(WithPhase(job, phase, reason));
  batch.events.push_back(PhaseEvent(job, batch.jobs[0]));
  MOTLEY_RETURN_IF_ERROR(journal.Commit(batch));
  job = batch.jobs[0];
  return absl::OkStatus();
}

void Core::SetReason(JobRecord& job, const std::string& reason) {
  const std::string kept = KeptText(reason, kMaxTextBytes);
  if (job.reason == kept) return;
  job.reason = kept;
  LogInfo(absl::StrCat("job ", job.id.value(), " ", std::string(JobPhaseName(job.phase)), ": ", kept));
  journal.Publish(job);
}

void Core::Emit(EventRecord event) {
  Batch batch;
  batch.events.push_back(std::move(event));
  if (absl::Status status = journal.Commit(batch); !status.ok()) {
    LogError(absl::StrCat("event not stored (", std::string(status.message()), "): ", batch.events[0].message));
  }
}

}  // namespace motley::coordinator
