// The room that transports want for a program's calls, made before they come.
#pragma once

#include "absl/status/status.h"
#include "common/job/job.h"
#include "common/program/program.h"
#include "common/session/assignment.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// Before the first step. Errors of Communicator::Reserve and ReserveCollective.
absl::Status ReserveTransfers(const RankAssignment& assignment, const Program& program, Precision precision,
                              Communicator& communicator);

}  // namespace motley::engine
