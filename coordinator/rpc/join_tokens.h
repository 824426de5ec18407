// CreateToken, ListTokens, RevokeToken: by what machines join. Durable when they return.
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// MakeToken's errors.
absl::Status CreateToken(Core& core, const v1::CreateTokenRequest& request, v1::CreateTokenResponse* response);
absl::Status ListTokens(Core& core, const v1::ListTokensRequest& request, v1::ListTokensResponse* response);
// NOT_FOUND: there is none of this id.
absl::Status RevokeToken(Core& core, const v1::RevokeTokenRequest& request, v1::RevokeTokenResponse* response);

}  // namespace motley::coordinator
