// Proofs by a shared secret: HMAC-SHA256 (RFC 2104), keys that are made of one (HKDF, RFC 5869), and the random bytes that
// secrets are made of, by OpenSSL.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace motley {

// 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view text);

// `bytes` of a key for one use: other salts, and other uses, give keys that tell nothing of each other. INTERNAL: OpenSSL
// refused.
absl::StatusOr<std::string> HkdfSha256(std::string_view secret, std::string_view salt, std::string_view use, size_t bytes);

// Whether they are equal, in a time that does not say where they differ.
bool EqualSecrets(std::string_view a, std::string_view b);

// For secrets. INTERNAL: the system has none now.
absl::StatusOr<std::string> RandomBytes(size_t bytes);

}  // namespace motley
