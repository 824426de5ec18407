#include "coordinator/client/progress.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clean_text.h"
#include "coordinator/client/format.h"

namespace motley::client {

void Progress::ShowState(const v1::Job& job) {
  std::string state = FormatState(job.state());
  if (!job.reason().empty()) absl::StrAppend(&state, ": ", CleanLine(job.reason()));
  if (state == shown_state_) return;
  shown_state_ = state;
  out_ << state << std::endl;
}

void Progress::Show(const v1::JobUpdate& update) {
  if (update.has_job()) {
    ShowState(update.job());
  } else if (update.has_event()) {
    // Changes of state come as states.
    if (update.event().kind() != "job_state") out_ << EventLine(update.event()) << std::endl;
  } else if (update.has_step()) {
    const v1::StepRecord& step = update.step();
    const bool wanted = log_freq_ <= 1 || step.step() % log_freq_ == 0 || step.step() == steps_ || step.has_validation_loss();
    if (wanted) out_ << StepLine(step, steps_) << std::endl;
  }
}

Exit EndOf(const v1::Job& job, std::ostream& out) {
  std::string sentence = absl::StrCat("job ", job.id(), " ", FormatState(job.state()), " at step ", job.step(), " of ",
                                      job.spec().training().steps());
  if (job.has_last_step()) absl::StrAppend(&sentence, absl::StrFormat(", loss %.4f", job.last_step().loss()));
  if (!job.newest_checkpoint().empty()) absl::StrAppend(&sentence, ", checkpoint ", CleanLine(job.newest_checkpoint()));
  if (job.state() == v1::JOB_STATE_SUCCEEDED) {
    out << sentence << std::endl;
    return {};
  }
  if (!job.reason().empty()) absl::StrAppend(&sentence, ": ", CleanLine(job.reason()));
  return {kJobDidNotSucceed, sentence};
}

}  // namespace motley::client
