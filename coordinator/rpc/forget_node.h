// ForgetNode: durable when it returns.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// NOT_FOUND names the members.
absl::Status ForgetNode(Core& core, const v1::ForgetNodeRequest& request, v1::ForgetNodeResponse* response);

}  // namespace motley::coordinator
