#include "coordinator/core/core.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "coordinator/state/same_news.h"

namespace motley::coordinator {
namespace {

// Tokens for the messages whose number a worker remembers. Only numbers that this coordinator has given get one: a worker can
// make it answer about others, and who has a token may show it for ever.
struct Vouch {
  const ClusterState& state;
  const NumberKey& numbers;

  std::string TokenOf(const JobId& job, Epoch epoch) const {
    const auto known = state.jobs.find(job);
    return known == state.jobs.end() || epoch > known->second.epoch ? "" : numbers.TokenOf(job, epoch);
  }
  void operator()(ProfileCommand& command) const { command.token = TokenOf(command.job, command.epoch); }
  void operator()(StopCommand& command) const { command.token = TokenOf(command.job, command.epoch); }
  void operator()(StartCommand& command) const {
    if (!command.ranks.empty()) command.token = TokenOf(command.ranks[0].job, command.ranks[0].epoch);
  }
  template <typename Other>
  void operator()(Other&) const {}
};

}  // namespace

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
  if (it == links.end()) return;
  std::visit(Vouch{state, numbers}, command);
  it->second->Send(std::move(command));
}

void Core::CountForeign(const NodeName& node, const std::string& kind, const std::string& why) {
  metrics.foreign_reports.Add({{"kind", kind}});
  if (!foreign_said.emplace(node, kind).second) return;
  LogWarning(absl::StrCat("worker ", node.value(), " reports ", why,
                          "; dropped, as every further such report (counted in motley_foreign_reports_total)"));
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
  const bool is_news = !IsSameButNumbers(job.reason, kept);  // or the log would repeat a sentence with every step
  job.reason = kept;
  if (is_news) LogInfo(absl::StrCat("job ", job.id.value(), " ", std::string(JobPhaseName(job.phase)), ": ", kept));
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
