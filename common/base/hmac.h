// Proofs by a shared secret: HMAC-SHA256 (RFC 2104), and the random bytes that secrets are made of, by OpenSSL.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace motley {

// 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view text);

// Whether they are equal, in a time that does not say where they differ.
bool EqualSecrets(std::string_view a, std::string_view b);

// For secrets. INTERNAL: the system has none now.
absl::StatusOr<std::string> RandomBytes(size_t bytes);

}  // namespace motley
