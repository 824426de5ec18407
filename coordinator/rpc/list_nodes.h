// ListNodes: all nodes by name, in pages.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

absl::Status ListNodes(Core& core, const v1::ListNodesRequest& request, v1::ListNodesResponse* response);

}  // namespace motley::coordinator
