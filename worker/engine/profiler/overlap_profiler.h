// How much longer compute takes beside a collective, and the collective beside compute: they share a card's cores and memory.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/session/assignment.h"
#include "common/session/profile.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/lanes/lane_timer.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// A layer's passes and all-gathers of the largest unit, each alone and then both at once. Every rank of the assignment calls it
// together; by rank. Empty: collectives are not in a stream here, and who declares a speed or computes on the host's cores
// declares or measures it with what disturbs it; or one is so much longer than the other that they hardly ran together. Errors:
// the communicator's, RESOURCE_EXHAUSTED, INTERNAL: the layer's.
absl::StatusOr<std::vector<Overlap>> ProfileOverlap(const RankAssignment& assignment, DeviceBackend& backend,
                                                    Communicator& communicator);

// Times of pieces that ran one after another: how many times longer than `alone` those took on average that ran while the others
// did, from their first begin to their last end. At least 1; nothing where none did.
std::optional<double> Slowdown(const std::vector<LaneTime>& pieces, double alone_seconds, const std::vector<LaneTime>& others);

}  // namespace motley::engine
