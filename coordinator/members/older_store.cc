#include "coordinator/members/older_store.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/ending.h"

namespace motley::coordinator {
namespace {

// An epoch a second for thirty thousand years: more is no number of ours.
constexpr int64_t kMaxEpoch = 1'000'000'000'000;
constexpr int64_t kMaxCommits = 1'000'000'000'000'000;
// Of jobs that the store does not know. Beyond it they are only told to end.
constexpr size_t kMaxForeign = 100000;
constexpr size_t kMaxForeignStores = 100;

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
  if (told.commits < 0 || told.commits > kMaxCommits) {
    return absl::InvalidArgumentError(
        absl::StrCat("hello.store_mark.commits must be 0 to ", kMaxCommits, ", got ", told.commits));
  }
  EventRecord event;
  event.kind = kind::kStoreOlder;
  event.node = node.name;
  if (told.store_id.empty() || (told.store_id == ours.store_id && told.commits <= ours.commits)) return absl::OkStatus();
  if (told.store_id != ours.store_id) {
    if (core.state.foreign_stores.size() >= kMaxForeignStores || !core.state.foreign_stores.insert(told.store_id).second)
      return absl::OkStatus();
    event.message = absl::StrCat("node ", node.name.value(), " has worked for a coordinator with another store (", told.commits,
                                 " commits): its jobs are not known here; if it was this one, restore its database");
    core.Emit(std::move(event));
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

absl::StatusOr<std::vector<StopCommand>> LearnEpochs(Core& core, const NodeDescription& node) {
  std::map<JobId, Epoch> newest;
  for (const auto& [id, epoch] : node.newest_epochs) {
    if (epoch.value() < 0 || epoch.value() > kMaxEpoch) {
      return absl::InvalidArgumentError(absl::StrCat("hello.newest_epochs holds generation ", epoch.value(), " of job '",
                                                     id.value().substr(0, 80), "'; they are 0 to ", kMaxEpoch));
    }
    newest[id] = std::max(newest[id], epoch);
  }
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
    if (epoch <= job->second.epoch) continue;
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
