// The cluster's own certificate authority: it says which key is which node's, and which is the coordinator's. One key, made with
// the state folder and kept in it; whoever has it is the authority. Thread-compatible.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/tls/certificate.h"
#include "common/tls/private_key.h"
#include "common/tls/term.h"

namespace motley {

// A certificate is valid from so long before it was made.
inline constexpr absl::Duration kClocksDiffer = absl::Hours(1);

// The name of every cluster's coordinator: clients ask for it whatever the address, so addresses may change.
inline constexpr char kCoordinatorName[] = "coordinator.motley";

// Of a node's certificate: its one URI, "spiffe://motley/node/n1"; of a coordinator's it says the term (term.h).
std::string UriOf(const NodeName& node);
// INVALID_ARGUMENT: not exactly one URI, or none of these.
absl::StatusOr<NodeName> NodeOf(const Certificate& certificate);

// Hex SHA-256 of a signing request's public key. INVALID_ARGUMENT as IssueNode says.
absl::StatusOr<std::string> KeyHashOfRequest(std::string_view request);

class CertificateAuthority {
 public:
  // A new one, good for ten years. INTERNAL: the library refused.
  static absl::StatusOr<CertificateAuthority> Make(absl::Time now);
  // INVALID_ARGUMENT: what is wrong with the files, or that they do not belong together.
  static absl::StatusOr<CertificateAuthority> FromPem(std::string_view key, std::string_view certificate);

  const Certificate& certificate() const { return certificate_; }
  absl::StatusOr<std::string> KeyPem() const { return key_.ToPem(); }

  // For the key of a signing request, of which nothing else is believed. Valid from an hour ago, as clocks differ.
  // INVALID_ARGUMENT: it is no request, longer than 16 KiB, of another kind of key, or not signed by its own; a name that no node
  // may have (names.h).
  absl::StatusOr<Certificate> IssueNode(const NodeName& node, std::string_view request, absl::Time now,
                                        absl::Duration lifetime) const;
  absl::StatusOr<Certificate> IssueCoordinator(const Term& term, std::string_view request, absl::Time now,
                                               absl::Duration lifetime) const;

 private:
  CertificateAuthority(PrivateKey key, Certificate certificate) : key_(std::move(key)), certificate_(std::move(certificate)) {}

  PrivateKey key_;
  Certificate certificate_;
};

}  // namespace motley
