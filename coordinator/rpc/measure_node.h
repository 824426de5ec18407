// MeasureNode: durable when it returns.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// NOT_FOUND: no such node.
absl::Status MeasureNode(Core& core, const v1::MeasureNodeRequest& request, v1::MeasureNodeResponse* response);

}  // namespace motley::coordinator
