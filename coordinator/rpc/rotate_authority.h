// RotateAuthority: durable when it returns; the change goes on by itself.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// FAILED_PRECONDITION: a change is under way.
absl::Status RotateAuthority(Core& core, const v1::RotateAuthorityRequest& request, v1::RotateAuthorityResponse* response);

}  // namespace motley::coordinator
