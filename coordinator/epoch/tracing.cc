#include "coordinator/epoch/tracing.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/duration_text.h"

namespace motley::coordinator {
namespace {

constexpr size_t kMostTraces = 4;
constexpr absl::Duration kPatience = absl::Seconds(30);

void Ask(Core& core, const JobRun& run, Epoch epoch, int64_t step) {
  for (size_t r = 0; r < run.ranks.size(); ++r)
    core.Send(NodeOf(run.ranks[r].device), TraceCommand{run.job, epoch, static_cast<int>(r), step});
}

}  // namespace

absl::StatusOr<const StepTrace*> TraceOf(Core& core, int64_t step) {
  JobRun& run = *core.state.run;
  const Epoch epoch = core.state.jobs.at(run.job).epoch;
  const absl::Duration now = core.clock.Now();
  std::erase_if(run.traces, [epoch](const auto& trace) { return trace.second.epoch != epoch; });
  const auto [found, added] = run.traces.try_emplace(step);
  StepTrace& trace = found->second;
  if (added) {
    trace = {epoch, now, std::vector<std::optional<TraceReport>>(run.ranks.size())};
    Ask(core, run, epoch, step);
    while (run.traces.size() > kMostTraces) run.traces.erase(run.traces.begin() == found ? std::next(found) : run.traces.begin());
  }
  std::vector<std::string> silent;
  for (size_t r = 0; r < trace.ranks.size(); ++r) {
    const std::optional<TraceReport>& answer = trace.ranks[r];
    if (!answer) {
      silent.push_back(run.ranks[r].device.value());
    } else if (!answer->error.empty()) {
      const std::string why = answer->error;
      run.traces.erase(found);  // asked anew next time
      return absl::NotFoundError(why);
    }
  }
  if (!silent.empty() && now - trace.asked > kPatience) {
    run.traces.erase(found);
    return absl::DeadlineExceededError(
        absl::StrCat(absl::StrJoin(silent, ", "), " did not say within ", DurationText(kPatience), " when step ", step,
                     "'s instructions ran; ask again, and look at the workers' logs when it stays so"));
  }
  return &trace;
}

void OnTrace(Core& core, const TraceReport& report) {
  JobRun& run = *core.state.run;
  const auto trace = run.traces.find(report.step);
  if (trace == run.traces.end() || trace->second.epoch != report.epoch) return;
  if (report.rank < 0 || static_cast<size_t>(report.rank) >= trace->second.ranks.size()) return;
  trace->second.ranks[report.rank] = report;
  core.journal.WakeReaders(run.job);
}

}  // namespace motley::coordinator
