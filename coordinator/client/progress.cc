#include "coordinator/client/progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clean_text.h"
#include "common/session/loss_text.h"
#include "coordinator/client/format.h"

namespace motley::client {

namespace {

constexpr size_t kIndent = 2;  // of what does not fit on a line

bool IsFailure(const v1::Event& event) {
  return event.kind() == "rank_failed" || event.kind() == "rank_lost" || event.kind() == "rank_hung";
}

}  // namespace

void Progress::Clear() {
  if (live_) out_ << "\r\x1b[K" << std::flush;
  live_ = false;
}

void Progress::Line(const std::string& text) {
  Clear();
  out_ << text << std::endl;
}

void Progress::Live(const std::string& text) {
  Clear();
  out_ << Cut(text, screen_.width - 1) << std::flush;
  live_ = true;
}

void Progress::PrintFailure() {
  if (failure_) Line(Fold(EventLine(*failure_), screen_.width, kIndent));
  failure_.reset();
}

void Progress::ShowJob(const v1::Job& job) {
  const std::string state = FormatState(job.state());
  const std::string reason = job.reason().empty() ? "" : absl::StrCat(": ", CleanLine(job.reason()));
  if (state + reason == shown_state_) return;
  // Within a state the reason tells how far it is: on a terminal that moves.
  const bool same_state = shown_state_.substr(0, shown_state_.find(':')) == state;
  shown_state_ = state + reason;
  if (screen_.live && same_state) return Live(shown_state_);
  // By its length without colours.
  const std::string text = Fold(shown_state_, screen_.width, kIndent);
  Line(Painted(screen_, state, state) + text.substr(state.size()));
}

void Progress::ShowStep(const v1::StepRecord& step) {
  if (screen_.live) {
    if (step.has_validation_loss()) {
      const std::string text = absl::StrFormat("step %d/%d  loss %s  validation loss %s", step.step(), steps_,
                                               LossText(step.loss()), ValidationText(step));
      Line(Fold(text, screen_.width, kIndent));
    }
    return Live(LiveLine(step, steps_, screen_.width));
  }
  const bool wanted = log_freq_ <= 1 || step.step() % log_freq_ == 0 || step.step() == steps_ || step.has_validation_loss();
  if (wanted) Line(Fold(StepLine(step, steps_), screen_.width, kIndent));
}

void Progress::Show(const v1::JobUpdate& update) {
  // A stream begins with the job as it is now, and does so again where it was broken.
  const bool greeting = update.has_job() && (!begun_ || update.cursor() <= cursor_);
  begun_ = true;
  if (greeting) {
    cursor_ = std::max(cursor_, update.cursor());
    greeting_ = update.job();
    if (screen_.live && !live_ && !HasEnded(greeting_->state()))
      Live(absl::StrCat(FormatState(greeting_->state()), ": ", CleanLine(greeting_->reason())));
    return;
  }
  cursor_ = update.cursor();
  if (update.has_job() && HasEnded(update.job().state())) {
    const bool told = failure_ && absl::StrContains(update.job().reason(), failure_->message());
    if (!told) PrintFailure();
    failure_.reset();
    return Clear();
  }
  PrintFailure();
  if (update.has_job()) {
    ShowJob(update.job());
  } else if (update.has_event()) {
    if (IsFailure(update.event())) {
      failure_ = update.event();
    } else if (update.event().kind() != "job_state") {  // changes of state come as states
      Line(Fold(EventLine(update.event()), screen_.width, kIndent));
    }
  } else if (update.has_step()) {
    if (greeting_ && shown_state_.empty() && !HasEnded(greeting_->state())) ShowJob(*greeting_);
    ShowStep(update.step());
  }
  greeting_.reset();
}

Exit EndOf(const v1::Job& job, std::ostream& out, const Screen& screen) {
  std::string sentence = absl::StrCat("job ", job.id(), " ", FormatState(job.state()), " at step ", job.step(), " of ",
                                      job.spec().training().steps());
  // Of a step that is repeated from a checkpoint before it, it is another step's.
  if (job.has_last_step() && job.last_step().step() == job.step())
    absl::StrAppend(&sentence, ", loss ", LossText(job.last_step().loss()));
  if (!job.newest_checkpoint().empty()) absl::StrAppend(&sentence, ", checkpoint ", CleanLine(job.newest_checkpoint()));
  if (job.state() == v1::JOB_STATE_SUCCEEDED) {
    const bool diverged =
        job.has_last_step() && job.last_step().has_validation_loss() && !std::isfinite(job.last_step().validation_loss());
    if (diverged) absl::StrAppend(&sentence, ": ", CleanLine(job.reason()));
    out << Fold(sentence, screen.width, kIndent) << std::endl;
    return {};
  }
  if (!job.reason().empty()) absl::StrAppend(&sentence, ": ", CleanLine(job.reason()));
  return {kJobDidNotSucceed, sentence};
}

}  // namespace motley::client
