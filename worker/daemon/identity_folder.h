// Where a node keeps what it shows of itself: node.key (0600), node.crt, authorities.crt and term.crt in a folder of its own.
// Files are replaced whole. Thread-compatible.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tls/node_identity.h"
#include "common/tls/private_key.h"

namespace motley::worker {

class IdentityFolder {
 public:
  explicit IdentityFolder(std::string path) : path_(std::move(path)) {}

  // FAILED_PRECONDITION: a file is missing, as of a node that has not joined; or others can read the key. Errors of files.
  absl::StatusOr<NodeIdentity> Load() const;
  // INVALID_ARGUMENT: it is none; else as Load.
  absl::StatusOr<PrivateKey> LoadKey() const;
  // The key that is there, else a new one, which is saved: who asks again to join is known by it. The folder is made.
  // FAILED_PRECONDITION: others can read it.
  absl::StatusOr<PrivateKey> LoadOrMakeKey() const;
  absl::Status SaveCertificate(const std::string& pem) const;
  absl::Status SaveAuthorities(const std::string& pem) const;
  // The certificate of the coordinator of the highest term that this node met (known_term.h); empty: of none.
  absl::StatusOr<std::string> LoadTerm() const;
  absl::Status SaveTerm(const std::string& pem) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace motley::worker
