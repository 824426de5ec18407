// Join: the one call of the workers' port that needs no certificate. Durable when it returns.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "coordinator/rpc/caller.h"
#include "proto/motley/v1/worker.pb.h"

namespace motley::coordinator {

// FAILED_PRECONDITION: it did not come by TLS, so whoever listens has the token now; RESOURCE_EXHAUSTED: the address was refused
// too often in this second; JoinNode's errors.
absl::Status Join(Core& core, const Caller& caller, const v1::JoinRequest& request, v1::JoinResponse* response);

}  // namespace motley::coordinator
