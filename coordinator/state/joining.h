// Who may join, and who comes by a member's name. Pure functions of the state.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "coordinator/state/cluster.h"

namespace motley::coordinator {

// A machine asks to be the node.
struct JoinAttempt {
  std::string token_id, secret_hash;  // of the token that it shows
  NodeName node;
  std::string key_hash;
  int64_t unix_ms = 0;       // now
  absl::Duration token_age;  // of the token, if it is known, as the steady clock counted (core/counted_time.h)
};

// By either clock: one that was set back makes no token good again.
bool IsExpired(const TokenRecord& token, int64_t unix_ms, absl::Duration age);

struct JoinDecision {
  TokenRecord token;    // after it was used
  bool is_new = false;  // else it is a member by this very key: its answer was lost, or its certificate has expired
};
// UNAUTHENTICATED: the token is not known, used or expired; ALREADY_EXISTS: the name is a member's, or a worker of this name is
// connected; INVALID_ARGUMENT: no node may have the name.
absl::StatusOr<JoinDecision> DecideJoin(const ClusterState& state, const JoinAttempt& attempt);

// Whether a worker may greet by this name. `identity`: what its certificate says; empty: it came without TLS. PERMISSION_DENIED:
// it is no member, was forgotten, joined anew with another key, says another name than its certificate, or came by a member's
// name without a certificate.
absl::Status CheckCaller(const ClusterState& state, const NodeName& said, const std::optional<NodeKey>& identity);

// Tokens that have certainly been expired for a day: nothing asks for them any more. `ages`: of all, by id.
std::vector<std::string> TokensToEnd(const ClusterState& state, const std::map<std::string, absl::Duration>& ages);

}  // namespace motley::coordinator
