// Authentication codes for a sequence of messages: AES-256-GMAC (NIST SP 800-38D), by OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

struct evp_cipher_ctx_st;  // OpenSSL's

namespace motley {

// One end of one direction: the sender's and the receiver's count alike, so a code is right at its own place in the sequence
// only. A key is for one sequence: two messages under one key and number give the key away. Not thread-safe.
class Gmac {
 public:
  static constexpr size_t kKeyBytes = 32, kCodeBytes = 16;
  using Code = std::array<char, kCodeBytes>;

  // INVALID_ARGUMENT: not kKeyBytes. INTERNAL: OpenSSL has no AES here.
  static absl::StatusOr<Gmac> Create(std::string_view key);
  // Of the next message. INTERNAL: OpenSSL refused; the sequence is over.
  absl::StatusOr<Code> Next(const void* message, size_t bytes);
  uint64_t messages() const { return messages_; }  // so far

 private:
  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  using Context = std::unique_ptr<evp_cipher_ctx_st, Free>;
  explicit Gmac(Context context) : context_(std::move(context)) {}

  Context context_;
  uint64_t messages_ = 0;
};

}  // namespace motley
