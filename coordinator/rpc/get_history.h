// GetHistory: a job's curve from its first step on.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// NOT_FOUND: no such job. Of one without a step the history is empty.
absl::Status GetHistory(Core& core, const v1::GetHistoryRequest& request, v1::GetHistoryResponse* response);

}  // namespace motley::coordinator
