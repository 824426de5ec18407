// Saves the state of all ranks as one checkpoint (common/checkpoint/checkpoint.h has the format). Called by every rank after the
// same step.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/session/assignment.h"
#include "worker/engine/base/rank_host.h"
#include "worker/engine/model/state.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// Every rank writes its file into the temporary folder; rank 0 collects the entries, proves that the epoch is the newest,
// publishes and prunes. All ranks return the same verdict: the first failure's status, which names its device. On failure
// the temporary folder is removed and published checkpoints are untouched. FAILED_PRECONDITION: a newer epoch exists.
// Fault::kStorage: it cannot be written now; the ranks may go on and try again. Fault::kPeer: they cannot. What one rank's
// machine refuses is Fault::kNode to that rank alone, and Fault::kPeer to the others.
absl::Status SaveCheckpoint(const RankAssignment& assignment, const ShardedState& state, int64_t step, Communicator& communicator,
                            RankHost& host);

// Rank 0, at the start of a run: removes the temporary folders that older epochs left. What cannot be removed is logged.
void RemoveAbandonedCheckpoints(const RankAssignment& assignment, RankHost& host);

}  // namespace motley::engine
