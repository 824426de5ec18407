// Looks for the newest checkpoint of a job, each on a thread of its own that nobody waits for: a share that does not answer holds
// up no other job, and not the process's end. Its thread cannot be ended either, so there is one for each folder at a time, and
// not more than a few in all.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "coordinator/core/core.h"
#include "coordinator/epoch/resume_point.h"
#include "planner/live/live_inputs.h"

namespace motley::coordinator {

inline constexpr size_t kMostLooks = 16;

struct LookTask {
  JobId job;
  CheckpointWish wish;
  planner::PlannerInput input;
  Prepared prepared;  // what it says
};

// Of the job that has the cluster, or one that was put aside; null: of no such job.
JobRun* RunOf(Core& core, const JobId& id);
CheckpointWish WishOf(const JobRun& run, const JobRecord& job);

// `done` runs on the loop when the look has come back. While another one is under way there, `next` runs when that has, unless
// somebody else came meanwhile. UNAVAILABLE: too many do not come back.
absl::Status BeginLook(Core& core, const std::shared_ptr<LookTask>& task, std::function<void()> done, std::function<void()> next);

// What a look said, to a job that waits for its folder (FolderWait); nothing to others.
void TellFolder(Core& core, const JobId& id, const absl::Status& look);

// Periodic: for jobs that wait for their folder, at growing intervals.
void LookAgain(Core& core);

// Into JobRun, which of the job's folders the look under way is at.
void NoteWhereItLooks(Core& core);

}  // namespace motley::coordinator
