// Who is at the other end of a call to the workers' server.
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/state/member.h"

namespace motley::coordinator {

struct Caller {
  std::string host;  // numeric; empty: by a Unix socket
  bool by_tls = false;
  std::optional<NodeKey> key;  // of its certificate
};
// UNAUTHENTICATED: its certificate is no node's.
absl::StatusOr<Caller> CallerOf(const grpc::CallbackServerContext& context);

}  // namespace motley::coordinator
