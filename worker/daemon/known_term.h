// The coordinator that this node follows: the one of the highest term that it met (common/tls/term.h), with the certificate that
// proves it to one of a lower term. Kept in the identity's folder.
#pragma once

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/tls/certificate.h"
#include "common/tls/term.h"
#include "worker/daemon/identity_folder.h"

namespace motley::worker {

// What a server showed in the handshake of one channel: set on gRPC's threads.
class ShownCertificate {
 public:
  void Set(const Certificate& certificate) {
    absl::MutexLock lock(&mutex_);
    certificate_ = certificate;
  }
  std::optional<Certificate> Get() const {
    absl::MutexLock lock(&mutex_);
    return certificate_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::optional<Certificate> certificate_ ABSL_GUARDED_BY(mutex_);
};

// Of one thread.
class KnownTerm {
 public:
  // What the folder has. One that no authority there signed is of another cluster, or of before its authority changed: nothing is
  // known then. FAILED_PRECONDITION: it cannot be read as a coordinator's certificate; errors of files.
  static absl::StatusOr<KnownTerm> Load(IdentityFolder folder);

  // A coordinator that let this node in shows the certificate: is it to be followed? Then its term is the known one from now on.
  // UNAVAILABLE: its term is lower than the known one, or the same of another coordinator.
  absl::Status Follow(const Certificate& shown);
  // What proves it to a coordinator, PEM; empty: none is known, or none whose signer this node still believes.
  std::string Proof() const;

 private:
  KnownTerm(IdentityFolder folder, Term term, std::string certificate)
      : folder_(std::move(folder)), term_(std::move(term)), certificate_(std::move(certificate)) {}

  IdentityFolder folder_;
  Term term_;  // number 0: none
  std::string certificate_;
};

}  // namespace motley::worker
