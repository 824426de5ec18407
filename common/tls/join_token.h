// What lets a new node in: one line that names the cluster's authority, so that the node knows whom it talks to, and a secret, so
// that the coordinator lets it sign up. As k3s and Docker Swarm have them. Plain values; whoever prints one gives it away.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/tls/certificate.h"

namespace motley {

struct JoinToken {
  std::string authority;  // 32 hex digits: the first 128 bits of the SHA-256 of its certificate
  std::string id;         // 8 letters and digits, by which the coordinator finds it; no secret
  std::string secret;     // 26 letters and digits: 130 bits
  friend bool operator==(const JoinToken&, const JoinToken&) = default;
};

// With a new id and secret. INTERNAL: the system has no random bytes now.
absl::StatusOr<JoinToken> MakeJoinToken(const Certificate& authority);

// "motley1.2e0b4b29bb5a7fbd9cd188787e012c52.h7k2mq4c.<secret>"
std::string ToText(const JoinToken& token);
// Blanks and line ends around it do not count. INVALID_ARGUMENT says what is wrong and never shows the secret.
absl::StatusOr<JoinToken> ParseJoinToken(std::string_view text);

// Whether the authority is the one that the token names.
bool IsOf(const JoinToken& token, const Certificate& authority);

// Hex SHA-256: what the coordinator keeps of it.
std::string HashOfSecret(const JoinToken& token);

}  // namespace motley
