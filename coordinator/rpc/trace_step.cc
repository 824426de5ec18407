#include "coordinator/rpc/trace_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/count.h"
#include "common/base/status_macros.h"
#include "common/wire/step_spans.h"
#include "coordinator/epoch/tracing.h"
#include "coordinator/rpc/find_job.h"

namespace motley::coordinator {

absl::Status TraceStepSource::Check(const Core& core, const JobRecord& job) {
  const int64_t steps = job.config.training.steps;
  if (step_ < 0 || step_ > steps) {
    return absl::InvalidArgumentError(absl::StrCat("step must be in 1..", steps, " (training.steps of job '", job.id.value(),
                                                   "'), or 0 for the newest; got ", step_));
  }
  if (IsFinal(job.phase)) {
    return absl::FailedPreconditionError(absl::StrCat("job '", job.id.value(), "' has ended (",
                                                      std::string(JobPhaseName(job.phase)),
                                                      "); its ranks, which kept the times of their steps, are gone"));
  }
  const bool here = core.state.run && core.state.run->job == job.id;
  const bool trains = here && (core.state.run->stage == Stage::kStarting || core.state.run->stage == Stage::kRunning);
  if (epoch_ != Epoch() && (!trains || job.epoch != epoch_)) {
    return absl::AbortedError(absl::StrCat("job '", job.id.value(), "' is planned again; ask again when it trains"));
  }
  if (!trains) {
    return absl::FailedPreconditionError(absl::StrCat("job '", job.id.value(), "' does not train now (",
                                                      std::string(JobPhaseName(job.phase)), "); ask again when it does"));
  }
  epoch_ = job.epoch;
  const int64_t first = core.state.run->first_step + 1;
  if (step_ == 0 || step_ >= first) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("step ", step_, " is of an earlier generation; the one that runs began with step ", first));
}

Pull TraceStepSource::Say(std::string doing, v1::TraceStepUpdate* out) {
  if (doing == said_) return Pull::kWait;
  said_ = doing;
  out->set_doing(std::move(doing));
  return Pull::kMessage;
}

absl::StatusOr<Pull> TraceStepSource::Next(Core& core, v1::TraceStepUpdate* out) {
  MOTLEY_ASSIGN_OR_RETURN(const JobRecord* job, FindJob(core, job_.value()));
  MOTLEY_RETURN_IF_ERROR(Check(core, *job));
  const JobRun& run = *core.state.run;
  const int64_t newest = run.epoch_steps > 0 ? job->step : run.first_step;
  if (step_ == 0 && newest > run.first_step) step_ = newest;
  if (step_ == 0 || step_ > newest) {
    const int64_t missing = std::max<int64_t>(1, step_ - newest);
    const double seconds =
        static_cast<double>(missing) * (run.typical_step_seconds > 0 ? run.typical_step_seconds : job->predicted_step_seconds);
    return Say(
        absl::StrFormat("waiting for %s, about %.0f s", step_ == 0 ? "the first step" : absl::StrCat("step ", step_), seconds),
        out);
  }
  MOTLEY_ASSIGN_OR_RETURN(const StepTrace* trace, TraceOf(core, step_));
  const auto silent = std::count_if(trace->ranks.begin(), trace->ranks.end(), [](const auto& answer) { return !answer; });
  if (silent > 0) return Say(absl::StrCat("asking ", Count(trace->ranks.size(), "rank"), " about step ", step_), out);
  if (sent_ == trace->ranks.size()) return Pull::kEnd;
  const TraceReport& report = *trace->ranks[sent_];
  v1::RankTimeline* rank = out->mutable_rank();
  rank->set_epoch(report.epoch.value());
  rank->set_step(report.step);
  rank->set_rank(report.rank);
  rank->set_ranks(static_cast<int>(trace->ranks.size()));
  rank->set_device_id(run.ranks[sent_].device.value());
  rank->set_step_seconds(report.step_seconds);
  *rank->mutable_spans() = wire::ToProto(report.spans);
  ++sent_;
  return Pull::kMessage;
}

}  // namespace motley::coordinator
