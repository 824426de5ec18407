#include "coordinator/members/older_store.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/ending.h"
#include "coordinator/state/sender.h"

namespace motley::coordinator {
namespace {

// Of jobs that the store does not know. Beyond it they are only told to end.
constexpr size_t kMaxForeign = 100000;
constexpr size_t kMaxForeignStores = 100;
constexpr size_t kLongestStoreId = 64;

// What runs under a number that is not the newest any more ends at once: it could not publish what it saved.
absl::Status LeaveEpoch(Core& core, const std::string& reason) {
  JobRun& run = *core.state.run;
  switch (run.stage) {
    case Stage::kIdle:
      return absl::OkStatus();
    case Stage::kStorage:
    case Stage::kPlanning:
      run.stage = Stage::kIdle;
      run.prepared.reset();
      return absl::OkStatus();
    case Stage::kProfiling:
    case Stage::kStarting:
    case Stage::kRunning:
      return BeginEnding(core, EndEpoch{false, Ending::kReplan, "older_store", std::nullopt}, reason);
    case Stage::kStopping:
      return run.saving ? KillRanks(core, KillEpoch{std::nullopt}, reason) : absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status LearnMark(Core& core, const NodeDescription& node) {
  const StoreMark& told = node.store_mark;
  const StoreMark ours = core.store.mark();
  EventRecord event;
  event.kind = kind::kStoreOlder;
  event.node = node.name;
  if (told.store_id.empty() || (told.store_id == ours.store_id && told.commits <= ours.commits)) return absl::OkStatus();
  if (told.store_id != ours.store_id) {
    if (told.store_id.size() > kLongestStoreId) return absl::OkStatus();
    if (core.state.foreign_stores.size() >= kMaxForeignStores || !core.state.foreign_stores.insert(told.store_id).second)
      return absl::OkStatus();
    event.message = absl::StrCat("node ", node.name.value(), " has worked for a coordinator with another store (", told.commits,
                                 " commits): its jobs are not known here; if it was this one, restore its database");
    core.Emit(std::move(event));
    return absl::OkStatus();
  }
  if (!core.numbers.Gave(told)) {
    core.CountForeign(node.name, kHelloMark,
                      absl::StrCat(told.commits, " commits of this store, which the coordinator did not tell it of"));
    return absl::OkStatus();
  }
  const int64_t lost = told.commits - ours.commits;
  event.message = absl::StrCat("the database is older than it was: node ", node.name.value(), " was told of ", told.commits,
                               " commits, ", ours.commits, " are there; what the others changed is lost");
  LogError(event.message);
  Batch batch;
  batch.count_from = told.commits;
  for (const auto& [id, job] : core.state.jobs) {
    if (IsFinal(job.phase)) continue;
    batch.jobs.push_back(job);
    batch.jobs.back().epoch = Epoch(job.epoch.value() + EpochRaise(lost));
    batch.epochs.push_back({id, batch.jobs.back().epoch, core.journal.UnixMs(), {}});
  }
  const std::string reason = event.message;
  batch.events.push_back(std::move(event));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  for (const JobRecord& job : batch.jobs) core.state.jobs[job.id] = job;
  return core.state.run ? LeaveEpoch(core, reason) : absl::OkStatus();
}

// The epochs above ours, by job, that a coordinator with our key gave. What it gave with another key is none of ours: the worker
// has ended it when it reads our welcome.
std::map<JobId, Epoch> Believed(Core& core, const NodeDescription& node) {
  std::map<JobId, Epoch> newest;
  const size_t looked_at = std::min(node.newest_epochs.size(), kMostSeenEpochs);
  for (size_t i = 0; i < looked_at; ++i) {
    const SeenEpoch& seen = node.newest_epochs[i];
    if (!seen.key_id.empty() && seen.key_id != core.numbers.id()) continue;
    const auto job = core.state.jobs.find(seen.job);
    if (job != core.state.jobs.end() && seen.epoch <= job->second.epoch) continue;
    if (core.numbers.Gave(seen)) {
      newest[seen.job] = std::max(newest[seen.job], seen.epoch);
      continue;
    }
    core.CountForeign(node.name, kHelloGeneration,
                      absl::StrCat("generation ", seen.epoch.value(), " of job '", seen.job.value().substr(0, 80),
                                   "', which the coordinator did not give it"));
  }
  return newest;
}

absl::StatusOr<std::vector<StopCommand>> LearnEpochs(Core& core, const NodeDescription& node) {
  const std::map<JobId, Epoch> newest = Believed(core, node);
  std::vector<StopCommand> stops;
  Batch batch;
  for (const auto& [id, epoch] : newest) {
    auto job = core.state.jobs.find(id);
    if (job == core.state.jobs.end()) {
      if (core.state.foreign_epochs.contains(id) || core.state.foreign_epochs.size() < kMaxForeign) {
        const bool known = core.state.foreign_epochs.contains(id);
        if (!known) {
          LogWarning(absl::StrCat("node ", node.name.value(), " has seen generation ", epoch.value(), " of job ", id.value(),
                                  ", which the coordinator does not know; it is told to end it"));
        }
        Epoch& seen = core.state.foreign_epochs[id];
        seen = std::max(seen, epoch);
      }
      stops.push_back({id, epoch, false, "the coordinator does not know this job"});
      continue;
    }
    stops.push_back({id, epoch, false, "the coordinator goes on from an older state"});
    EventRecord event;
    event.job = id;
    event.kind = kind::kEpochRaised;
    event.node = node.name;
    event.epoch = epoch;
    event.message = absl::StrFormat(
        "node %s has seen generation %d of this job, the coordinator's state knows %d: it is older than what was begun; the job "
        "goes on "
        "above %d",
        node.name.value(), epoch.value(), job->second.epoch.value(), epoch.value());
    JobRecord next = job->second;
    next.epoch = epoch;
    batch.epochs.push_back({id, epoch, core.journal.UnixMs(), {}});
    batch.jobs.push_back(std::move(next));
    batch.events.push_back(std::move(event));
  }
  if (batch.jobs.empty()) return stops;
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  for (size_t i = 0; i < batch.jobs.size(); ++i) {
    const JobId id = batch.jobs[i].id;
    core.state.jobs[id] = std::move(batch.jobs[i]);
    if (!core.state.run || core.state.run->job != id) continue;
    MOTLEY_RETURN_IF_ERROR(LeaveEpoch(core, batch.events[i].message));
  }
  return stops;
}

}  // namespace

absl::StatusOr<std::vector<StopCommand>> LearnFrom(Core& core, const NodeDescription& node) {
  MOTLEY_RETURN_IF_ERROR(LearnMark(core, node));
  return LearnEpochs(core, node);
}

}  // namespace motley::coordinator
