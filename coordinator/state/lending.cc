#include "coordinator/state/lending.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/state/decide_view.h"
#include "coordinator/state/membership.h"
#include "coordinator/state/queue.h"

namespace motley::coordinator {
namespace {

// The oldest job put aside that is older than this one; null: there is none.
const JobRecord* LenderOf(const ClusterState& state, const JobRun& run) {
  const JobRecord &job = state.jobs.at(run.job), *oldest = nullptr;
  for (const auto& [id, lender] : state.aside) {
    const JobRecord& other = state.jobs.at(id);
    if (IsOlder(other, job) && (oldest == nullptr || IsOlder(other, *oldest))) oldest = &other;
  }
  return oldest;
}

// A job that took the cluster back and was put aside again without a step has displaced somebody for nothing.
absl::Duration PauseBetweenClaims(const DriverConfig& config, const JobRun& run) {
  return run.aside.times < 2 ? absl::ZeroDuration() : PauseAfterRefusals(config.probe, run.aside.times - 2);
}

// Nobody is displaced where what has the cluster waits as well, and not in vain where more devices are there than ever were.
bool MayBeInVain(const ClusterState& state, const JobRun& run) {
  if (!state.run || state.run->lends_since) return false;
  return UsableDevices(state, run, NotRefused(state, run)).size() <= run.aside.most_tried;
}

// Whether it may be asked at all.
bool MayClaim(absl::Duration now, const ClusterState& state, const DriverConfig& config, const JobRun& run) {
  if (state.membership_changed == run.aside.membership || state.jobs.at(run.job).stop_requested) return false;
  return now - run.aside.since >= PauseBetweenClaims(config, run) || !MayBeInVain(state, run);
}

// What the lender waited for, or waits for.
std::string IsBack(const JobRun& lender) { return lender.aside.of_folder ? "checkpoint folder is back" : "devices are back"; }

bool CanBegin(const Decision& decision) { return std::holds_alternative<BeginSetup>(decision.action); }

bool AwaitsProbe(const ClusterState& state, const JobRun& run) {
  return UsableDevices(state, run, NotRefused(state, run)).size() != UsableDevices(state, run).size();
}

}  // namespace

bool Borrows(const ClusterState& state, const JobRun& run) { return LenderOf(state, run) != nullptr; }

std::optional<JobId> ChooseBorrower(absl::Duration now, const ClusterState& state, const DriverConfig& config) {
  const JobRun& run = *state.run;
  const bool anybody =
      std::any_of(state.nodes.begin(), state.nodes.end(), [](const auto& entry) { return MayBeUsed(entry.second); });
  if (state.stops_at || !anybody || !run.lends_since || !AllGone(state, run) || AwaitsProbe(state, run)) return std::nullopt;
  // Whoever borrows itself was tried with what is left: nobody waits for more.
  if (now - *run.lends_since < config.lend_after && !Borrows(state, run)) return std::nullopt;
  const JobRecord* oldest = nullptr;
  for (const auto& [id, job] : state.jobs) {
    if (state.awaits_inputs.contains(id)) continue;
    if (IsFinal(job.phase) || job.stop_requested || id == run.job) continue;
    if (oldest != nullptr && IsOlder(*oldest, job)) continue;
    const auto aside = state.aside.find(id);
    const bool may = aside == state.aside.end() ||
                     (MayClaim(now, state, config, aside->second) && CanBegin(DecideAside(now, state, aside->second, config)));
    if (may) oldest = &job;
  }
  if (oldest == nullptr) return std::nullopt;
  return oldest->id;
}

Claims DecideClaims(absl::Duration now, const ClusterState& state, const DriverConfig& config) {
  Claims claims;
  if (!state.run || state.stops_at) return claims;
  const JobRecord *holder = &state.jobs.at(state.run->job), *oldest = nullptr;
  for (const auto& [id, run] : state.aside) {
    const JobRecord& job = state.jobs.at(id);
    if (!MayClaim(now, state, config, run)) continue;
    const Decision decision = DecideAside(now, state, run, config);
    const auto* wait = std::get_if<Wait>(&decision.action);
    if (wait != nullptr && wait->lends) claims.unable.emplace_back(id, decision.reason);
    if (CanBegin(decision) && IsOlder(job, *holder) && (oldest == nullptr || IsOlder(job, *oldest))) oldest = &job;
  }
  if (oldest != nullptr) claims.claimant = oldest->id;
  return claims;
}

std::optional<Decision> DecideYield(const DecideView& v) {
  if (!v.state.claimant || v.state.run->job != v.run.job) return std::nullopt;
  const auto lender = v.state.aside.find(*v.state.claimant);
  const bool of_folder = lender != v.state.aside.end() && lender->second.aside.of_folder;
  const std::string reason =
      absl::StrCat("the ", of_folder ? "checkpoint folder" : "devices", " of job ", v.state.claimant->value(),
                   ", which lent the cluster, ", of_folder ? "is" : "are", " back: this one is queued again");
  const bool running = v.run.stage == Stage::kRunning;
  switch (v.run.stage) {
    case Stage::kIdle:
    case Stage::kStorage:
      return Decision{Yield{}, reason};
    case Stage::kPlanning:
      // Ranks that measured may still hold memory.
      if (AllGone(v.state, v.run) || v.in_stage() > v.config.kill_timeout) return Decision{Yield{}, reason};
      return Decision{KeepOn{}, absl::StrCat(reason, " when the ranks that measured have ended")};
    case Stage::kProfiling:
    case Stage::kStarting:
    case Stage::kRunning:
      return Decision{EndEpoch{running, Ending::kReplan, running ? "yielded" : "", std::nullopt}, reason};
    case Stage::kStopping:
      break;
  }
  return std::nullopt;
}

std::string LenderSentence(const ClusterState& state, const JobRun& lender) {
  if (!state.run) return lender.aside.why;
  const JobRecord& holder = state.jobs.at(state.run->job);
  if (!IsOlder(state.jobs.at(lender.job), holder)) return WaitsForSentence(holder);
  if (state.claimant == lender.job) {
    return absl::StrCat("its ", IsBack(lender), ": goes on when job ", holder.id.value(),
                        ", which borrowed the cluster, has made room");
  }
  if (state.run->lends_since) return lender.aside.why;  // it waits as well
  return absl::StrCat(lender.aside.why, "; lends the cluster to job ", holder.id.value(), " until its ", IsBack(lender));
}

std::string BorrowerSentence(const ClusterState& state) {
  const JobRecord* lender = LenderOf(state, *state.run);
  if (lender == nullptr) return "";
  return absl::StrCat("borrows the cluster from job ", lender->id.value(), ", and is queued again when that job's ",
                      IsBack(state.aside.at(lender->id)));
}

}  // namespace motley::coordinator
