// Saves the state of all ranks as one checkpoint (common/checkpoint/checkpoint.h has the format). Called by every rank after the
// same step.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/session/assignment.h"
#include "worker/engine/base/rank_host.h"
#include "worker/engine/model/state.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// Every rank writes its file into the temporary folder and looks for rank 0's token there, for up to `patience`; rank 0 collects
// the entries, looks at every file, proves that the epoch is the newest, publishes and prunes. All ranks return the same verdict,
// which names a device, and carries the one whose node is to blame where that is known (BlamedDeviceOf; save_verdict.h). On
// failure the temporary folder is removed and published checkpoints are untouched. FAILED_PRECONDITION: a newer epoch exists.
// Fault::kStorage: it cannot be written now; the ranks may go on and try again. Fault::kPeer: they cannot. What
// one rank's machine refuses is Fault::kNode to that rank alone, and Fault::kPeer to the others.
absl::Status SaveCheckpoint(const RankAssignment& assignment, const ShardedState& state, int64_t step, absl::Duration patience,
                            Communicator& communicator, RankHost& host);

// Rank 0, at the start of a run: removes the temporary folders that older epochs left, and puts the file `adopt` aside where the
// run goes on from something. What cannot be done is logged.
void RemoveAbandonedCheckpoints(const RankAssignment& assignment, RankHost& host);

}  // namespace motley::engine
