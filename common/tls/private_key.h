// A key pair on P-256 (ECDSA). It never leaves the machine that made it; what leaves is a signing request.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

struct evp_pkey_st;

namespace motley {

class PrivateKey {
 public:
  // INTERNAL: the library refused.
  static absl::StatusOr<PrivateKey> Make();
  // INVALID_ARGUMENT: no private key on P-256 in PEM.
  static absl::StatusOr<PrivateKey> FromPem(std::string_view pem);

  // PKCS #8, unencrypted: for a file of mode 0600.
  absl::StatusOr<std::string> ToPem() const;
  // A signing request (PKCS #10) in PEM that carries the public key and proves that this is its other half. It names nobody: who
  // signs writes the name.
  absl::StatusOr<std::string> SigningRequest() const;
  // Hex SHA-256 of the public half.
  std::string PublicHash() const;

  evp_pkey_st* get() const { return key_.get(); }

 private:
  explicit PrivateKey(std::shared_ptr<evp_pkey_st> key) : key_(std::move(key)) {}
  std::shared_ptr<evp_pkey_st> key_;
};

}  // namespace motley
