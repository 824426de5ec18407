#include "coordinator/client/running_job.h"

#include <sysexits.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/progress.h"
#include "coordinator/client/watch.h"

namespace motley::client {
namespace {

constexpr absl::Duration kVerdictWait = absl::Seconds(1);

Watch WatchOf(Context& context, const v1::Job& job, int64_t cursor) {
  Watch watch;
  watch.job_id = job.id();
  watch.use = [](const v1::JobUpdate&) {};
  watch.say = [&context](const std::string& text) { context.Say(text); };
  watch.cursor = cursor;
  return watch;
}

// As though the coordinator had refused the job; 1 where the kind of error is not known.
Exit FromFailure(const v1::Job& job) {
  const auto code = static_cast<absl::StatusCode>(job.error_code());
  const std::string text = absl::StrCat("job ", job.id(), " failed: ", job.reason());
  if (code == absl::StatusCode::kOk) return {kJobDidNotSucceed, text};
  // What does not fit these devices will not fit them later.
  if (code == absl::StatusCode::kResourceExhausted) return {EX_DATAERR, text};
  return FromServer(absl::Status(code, text));
}

// Nothing is to be heard of it before the other job has ended. The coordinator's sentence begins so (state/queue).
bool IsBehindOthers(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_QUEUED && absl::StartsWith(job.reason(), "waits for job ");
}

// Who asks now is told behind whom, and how long that may take.
void SayPlace(Context& context, Connection& connection, const std::string& id) {
  const absl::StatusOr<v1::Job> now = GetJob(connection, id);
  if (!now.ok() || now->state() != v1::JOB_STATE_QUEUED || now->reason().empty()) return;
  PrintProse(context, absl::StrCat("it is queued: ", CleanLine(now->reason())));
}

}  // namespace

Exit Begin(Context& context, Connection& connection, const v1::Job& job, int64_t cursor) {
  Watch watch = WatchOf(context, job, cursor);
  watch.deadline = absl::Now() + kVerdictWait;
  const absl::StatusOr<v1::Job> verdict =
      IsBehindOthers(job) ? absl::StatusOr<v1::Job>(job) : WatchToFirstVerdict(connection, job, watch);
  // The job is there whatever became of the connection since.
  const v1::Job& newest = verdict.ok() ? *verdict : job;
  if (context.json) PrintDocument(context.out, ToJson(newest));
  if (newest.state() == v1::JOB_STATE_FAILED) return FromFailure(newest);
  if (context.json) return {};
  if (newest.state() == v1::JOB_STATE_WAITING) PrintProse(context, absl::StrCat("it waits: ", newest.reason()));
  if (newest.state() == v1::JOB_STATE_QUEUED) SayPlace(context, connection, job.id());
  return {};
}

Exit Follow(Context& context, Connection& connection, const v1::Job& job, int64_t cursor) {
  if (!context.json) context.out << "it runs on when this command ends: motley status " << job.id() << std::endl;
  Progress progress(context.out, job.spec().training().steps(), job.spec().metrics().log_freq(), context.screen);
  Watch watch = WatchOf(context, job, cursor);
  watch.say = [&](const std::string& text) {
    progress.Clear();
    context.Say(text);
  };
  if (!context.json) watch.use = [&progress](const v1::JobUpdate& update) { progress.Show(update); };
  auto ended = WatchToEnd(connection, watch);
  if (!ended.ok()) return FromServer(ended.status());
  if (!context.json) return EndOf(*ended, context.out, context.screen);
  PrintDocument(context.out, ToJson(*ended));
  return {ended->state() == v1::JOB_STATE_SUCCEEDED ? 0 : kJobDidNotSucceed, ""};
}

}  // namespace motley::client
