// Times uneven all-gather and reduce-scatter over array size and skew, on the ranks and links that will train.
#pragma once

#include "absl/status/statusor.h"
#include "common/session/assignment.h"
#include "common/session/profile.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// Every rank of the assignment calls it together; group 0 of the communicator is all of them. Sizes: the model's smallest and
// largest unit; skews: even, one half, one owner. A point's time is that of the slowest rank: from a common start, or, where the
// collectives are in a stream, between the stream's marks. Arrays lie where those of training do. Errors: the communicator's.
absl::StatusOr<CollectiveProfile> ProfileRing(const RankAssignment& assignment, DeviceBackend& backend,
                                              Communicator& communicator);

}  // namespace motley::engine
