#include "coordinator/epoch/looks.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/count.h"
#include "common/base/duration_text.h"
#include "coordinator/epoch/local_looks.h"
#include "coordinator/epoch/planner_input.h"
#include "coordinator/state/cause.h"
#include "coordinator/state/folder_wait.h"

namespace motley::coordinator {
namespace {

// On its thread, on values of its own: whose folder does not answer never comes back.
void LookForNewest(LookTask& task) {
  if (!task.wish.folder.empty()) {
    task.prepared = FindResumePoint(task.input, task.wish);
  } else {
    task.prepared.epoch = task.input.epoch;
  }
}

absl::Status TooMany(const Core& core) {
  const auto oldest = std::min_element(core.looks.begin(), core.looks.end(),
                                       [](const auto& a, const auto& b) { return a.second.since < b.second.since; });
  return absl::UnavailableError(absl::StrCat(Count(core.looks.size(), "look"),
                                             " for checkpoints do not come back, and more are not begun; the oldest is in '",
                                             oldest->first, "' for ", DurationText(core.clock.Now() - oldest->second.since),
                                             ": see whether the shares of the jobs' folders answer on this machine"));
}

void SayFolder(JobRun& run, std::string why) {
  run.folder.why = std::move(why);
  if (run.aside.of_folder) run.aside.why = run.folder.why;
}

void LookAgainFor(Core& core, JobRun& run) {
  if (run.folder.why.empty() || run.stage != Stage::kIdle) return;
  const JobRecord& job = core.state.jobs.at(run.job);
  const absl::Duration now = core.clock.Now(), patience = core.config.driver.look_patience;
  if (const auto look = core.looks.find(CheckpointFolder(job)); look != core.looks.end()) {
    if (now - look->second.since > patience) SayFolder(run, WhyLookHangs(job.config, *look->second.at_initial, patience));
    return;
  }
  if (core.local_looks.contains(job.id)) return;
  // A node that comes may bring what lacks.
  const bool news = IsOnNodesDisks(job.config.checkpoint) && core.state.membership_changed > run.folder.looked;
  if (!news && now - run.folder.looked < PauseAfter(Remedy::kWaitForStorage, run.trouble.times)) return;
  run.folder.looked = now;
  absl::StatusOr<planner::PlannerInput> input = MakePlannerInput(core, job, {});
  if (!input.ok()) return TellFolder(core, job.id, input.status());
  const auto task = std::make_shared<LookTask>();
  task->job = job.id;
  task->wish = WishOf(run, job);
  task->input = *std::move(input);
  // Those of the last set-up that are here still: one that can keep no checkpoints would refuse the next one, too.
  for (const DeviceDescription& device : run.considered) {
    const auto node = core.state.nodes.find(NodeOf(device.id));
    if (node != core.state.nodes.end() && node->second.connected && !node->second.drained) task->input.devices.push_back(device);
  }
  const absl::Status begun = BeginLook(
      core, task, [&core, task] { TellFolder(core, task->job, task->prepared.status); }, nullptr);
  if (!begun.ok()) TellFolder(core, job.id, begun);
}

}  // namespace

JobRun* RunOf(Core& core, const JobId& id) {
  if (core.state.run && core.state.run->job == id) return &*core.state.run;
  const auto aside = core.state.aside.find(id);
  return aside == core.state.aside.end() ? nullptr : &aside->second;
}

CheckpointWish WishOf(const JobRun& run, const JobRecord& job) {
  CheckpointWish wish{CheckpointFolder(job), OwnerOf(job), job.newest_checkpoint,
                      job.data.digest,       run.damaged,  job.started_unix_ms == 0,
                      job.initial_of,        nullptr,      job.initial_digest};
  wish.safe = job.safe_checkpoint;
  wish.go_back = job.go_back;
  wish.adopts = AwaitsAdopted(job);
  wish.adopts_all = AdoptsAll(job);
  return wish;
}

absl::Status BeginLook(Core& core, const std::shared_ptr<LookTask>& task, std::function<void()> done,
                       std::function<void()> next) {
  if (IsOnNodesDisks(core.state.jobs.at(task->job).config.checkpoint)) return BeginLocalLook(core, task, std::move(done));
  const std::string folder = task->wish.folder;
  if (auto under_way = core.looks.find(folder); under_way != core.looks.end()) {
    under_way->second.next = std::move(next);
    return absl::OkStatus();
  }
  if (core.looks.size() >= kMostLooks) return TooMany(core);
  task->wish.at_initial = std::make_shared<std::atomic<bool>>(false);
  core.looks[folder] = {core.clock.Now(), task->wish.at_initial, nullptr};
  core.executor.RunApart([task] { LookForNewest(*task); },
                         [&core, task, folder, done = std::move(done)] {
                           const LookUnderWay ended = std::move(core.looks.extract(folder).mapped());
                           if (JobRun* run = RunOf(core, task->job)) run->folder.took = core.clock.Now() - ended.since;
                           if (ended.next) ended.next();
                           done();
                         });
  return absl::OkStatus();
}

void TellFolder(Core& core, const JobId& id, const absl::Status& look) {
  JobRun* run = RunOf(core, id);
  if (run == nullptr || run->folder.why.empty()) return;
  if (MayBeBackLater(look)) {
    ++run->trouble.times;
    run->folder.looked = core.clock.Now();
    return SayFolder(*run, WhyNoLook(look));
  }
  run->folder.why.clear();
  run->trouble.waited = true;
  run->aside.membership = -absl::InfiniteDuration();  // it is asked at once
}

void LookAgain(Core& core) {
  if (core.stopping || core.state.stops_at) return;
  EndLateLooks(core);
  if (core.state.run) LookAgainFor(core, *core.state.run);
  for (auto& [id, run] : core.state.aside) LookAgainFor(core, run);
}

void NoteWhereItLooks(Core& core) {
  JobRun& run = *core.state.run;
  if (!run.looking) return;
  const auto look = core.looks.find(CheckpointFolder(core.state.jobs.at(run.job)));
  run.looks_at_initial = look != core.looks.end() && *look->second.at_initial;
}

}  // namespace motley::coordinator
