// A store that was restored, or lost its newest commits, hands out epoch numbers that were used before: ranks of those epochs
// may still live, and workers drop what is older than what they have seen. What a worker remembers puts that right.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/session/session.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// Before a worker is let in. A mark above the store's own says that commits are lost: it is an event, and the epochs of all jobs
// that are not finished go up by as many. Epochs that the worker has seen and the store has not raise the numbers of their jobs.
// Both are durable when it returns, and an epoch that runs under a lower number ends. Returns what this worker is to be told once
// it is in: the end of those epochs, and of epochs of jobs that the store does not know. A number without the token that it was
// given with is counted as foreign and does nothing. Errors are the store's: no worker is refused for a number.
absl::StatusOr<std::vector<StopCommand>> LearnFrom(Core& core, const NodeDescription& node);

}  // namespace motley::coordinator
