// DrainNode: durable when it returns.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// NOT_FOUND names the known nodes.
absl::Status DrainNode(Core& core, const v1::DrainNodeRequest& request, v1::DrainNodeResponse* response);

}  // namespace motley::coordinator
