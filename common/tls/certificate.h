// An X.509 certificate, read. Immutable.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

struct x509_st;

namespace motley {

class Certificate {
 public:
  // All that are in the text, in its order. INVALID_ARGUMENT: there is none, or what follows one is none.
  static absl::StatusOr<std::vector<Certificate>> FromPem(std::string_view pem);
  explicit Certificate(std::shared_ptr<x509_st> certificate) : certificate_(std::move(certificate)) {}

  std::string ToPem() const;
  // Hex SHA-256 of the whole of it (DER), and of its public key.
  std::string Hash() const;
  std::string PublicHash() const;
  absl::Time not_before() const;
  absl::Time not_after() const;
  // Of its alternative names.
  std::vector<std::string> Uris() const;
  std::vector<std::string> DnsNames() const;
  // What follows the prefix in its one URI. INVALID_ARGUMENT: it has none or several, or one of another kind.
  absl::StatusOr<std::string> OnlyUri(std::string_view prefix) const;
  bool IsAuthority() const;
  // Whether the authority's key signed it, whenever.
  bool IsSignedBy(const Certificate& authority) const;

  x509_st* get() const { return certificate_.get(); }

 private:
  std::vector<std::string> AlternativeNames(int kind) const;
  std::shared_ptr<x509_st> certificate_;
};

}  // namespace motley
