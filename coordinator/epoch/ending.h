// How an epoch and a job end.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "coordinator/state/decide.h"

namespace motley::coordinator {

// Tells every rank that may still live to save and end, or to end at once.
absl::Status BeginEnding(Core& core, const EndEpoch& action, const std::string& reason);
// Saving did not work out: the ranks are killed.
absl::Status KillRanks(Core& core, const KillEpoch& action, const std::string& reason);
// Every rank is gone: the next epoch, or the end of the job.
absl::Status FinishEnding(Core& core);
// The user resumes a job that was told to stop and has not: it goes on. What it saves meanwhile it saves.
absl::Status WithdrawStop(Core& core, JobRecord& job);
// A plan could not be made now: back to idle, where a pause is waited for; or the folder of checkpoints, if it is for that.
void Postpone(Core& core, const std::string& reason, bool for_folder);
// What the nodes were asked beside the job's ranks is not waited for any more, and nobody watches the job's pace: it is over, or
// others have the cluster. Its ranks are gone.
void LeaveCluster(Core& core, const std::string& reason);
// The job makes room for one that lent it the cluster, and is queued again.
absl::Status YieldCluster(Core& core, const std::string& reason);
// The job is over and gives the cluster back.
absl::Status FinishJob(Core& core, JobPhase phase, const std::string& reason,
                       absl::StatusCode error_code = absl::StatusCode::kOk);

}  // namespace motley::coordinator
