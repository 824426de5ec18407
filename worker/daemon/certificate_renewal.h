// Keeps a node's certificate good while its session lasts: asks for a new one in time, stores what comes. What is stored counts
// for the next dial; nothing is restarted. Session's thread only.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/session/session.h"
#include "worker/daemon/identity_folder.h"

namespace motley::worker {

class CertificateRenewal {
 public:
  CertificateRenewal(IdentityFolder folder, NodeName node);

  // What to ask the coordinator for now; asked again when no answer could be stored for a while.
  std::optional<RenewalReport> Due(absl::Time now);
  // Whom to believe. What cannot be read, or holds none, is logged and changes nothing.
  void OnAuthorities(const AuthoritiesCommand& command);
  // What to answer: that it is stored.
  std::optional<RenewalReport> OnCertificate(const CertificateCommand& command, absl::Time now);

 private:
  void Reckon();

  const IdentityFolder folder_;
  const NodeName node_;
  absl::Time renew_at_;
  absl::Time ask_again_ = absl::InfinitePast();
};

}  // namespace motley::worker
