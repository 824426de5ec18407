#include "coordinator/state/queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/count.h"
#include "common/base/duration_text.h"
#include "coordinator/state/lending.h"

namespace motley::coordinator {
namespace {

std::string About(absl::Duration time) { return DurationText(absl::Trunc(time, absl::Seconds(1))); }

std::string StepsLeft(const JobRun& run, const JobRecord& job) {
  const int64_t steps = job.config.training.steps, left = std::max<int64_t>(0, steps - job.step);
  const double step_seconds = run.typical_step_seconds > 0 ? run.typical_step_seconds : job.predicted_step_seconds;
  const std::string text = absl::StrCat(job.id.value(), " has ", left, " of ", Count(steps, "step"), " left");
  if (step_seconds <= 0) return absl::StrCat(text, ", and has not been planned yet");
  return absl::StrCat(text, ", about ", About(absl::Seconds(static_cast<double>(left) * step_seconds)));
}

}  // namespace

bool IsOlder(const JobRecord& a, const JobRecord& b) {
  return std::pair(a.submitted_unix_ms, a.id) < std::pair(b.submitted_unix_ms, b.id);
}

bool ComesBefore(const JobRecord& a, const JobRecord& b) {
  // One that waits for devices has lent the cluster, or holds it as the oldest.
  const auto had_ranks = [](const JobRecord& job) { return job.phase != JobPhase::kQueued && job.phase != JobPhase::kWaiting; };
  return had_ranks(a) != had_ranks(b) ? had_ranks(a) : IsOlder(a, b);
}

std::string WaitsForSentence(const JobRecord& holder) {
  return absl::StrCat("waits for job ", holder.id.value(), ", which has the cluster: one job trains at a time");
}

std::string QueueSentence(int64_t now_unix_ms, const ClusterState& state, const JobRecord& job) {
  if (job.phase != JobPhase::kQueued || !state.run || state.run->job == job.id) return "";
  if (state.awaits_inputs.contains(job.id)) return "";
  int64_t before = 0;
  for (const auto& [id, other] : state.jobs) {
    before += !IsFinal(other.phase) && id != state.run->job && id != job.id && ComesBefore(other, job);
  }
  const JobRecord& holder = state.jobs.at(state.run->job);
  std::string text = absl::StrCat(WaitsForSentence(holder), "; ", StepsLeft(*state.run, holder), "; queued for ",
                                  About(absl::Milliseconds(std::max<int64_t>(0, now_unix_ms - job.submitted_unix_ms))));
  if (before > 0) absl::StrAppend(&text, ", behind ", Count(before, "other job"));
  return text;
}

QueueDecision DecideQueue(const ClusterState& state) {
  QueueDecision decision;
  const JobRecord* next = nullptr;
  for (const auto& [id, job] : state.jobs) {
    if (IsFinal(job.phase) || (state.run && state.run->job == id)) continue;
    if (job.stop_requested && (job.phase == JobPhase::kQueued || state.aside.contains(id))) {
      decision.stopped.push_back(id);
      continue;
    }
    if (state.awaits_inputs.contains(id)) continue;  // others pass it
    if (!state.run && (next == nullptr || ComesBefore(job, *next))) next = &job;
  }
  if (next != nullptr) decision.activate = next->id;
  const JobId holder = state.run ? state.run->job : next != nullptr ? next->id : JobId();
  for (const auto& [id, job] : state.jobs) {
    if (IsFinal(job.phase) || id == holder || job.stop_requested) continue;
    if (const auto awaits = state.awaits_inputs.find(id); awaits != state.awaits_inputs.end()) {
      decision.waiting.emplace_back(id, awaits->second);
      continue;
    }
    const auto aside = state.aside.find(id);
    decision.waiting.emplace_back(
        id, aside == state.aside.end() ? WaitsForSentence(state.jobs.at(holder)) : LenderSentence(state, aside->second));
  }
  return decision;
}

}  // namespace motley::coordinator
