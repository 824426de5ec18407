// A machine joins a cluster: who listens is known by the token before the token is shown, the key never leaves the machine, and
// the certificate that comes back is looked at before it counts. As k3s does it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/tls/certificate.h"
#include "common/tls/join_token.h"
#include "worker/daemon/identity_folder.h"

namespace motley::worker {

struct JoinRequest {
  JoinToken token;
  std::string coordinator;  // host:port of its workers' sessions
  NodeName node;
};
// Whether this machine's clock lies within the time for which the coordinator's certificates are valid: the handshake refuses
// them otherwise, and says only that they cannot be verified. UNAVAILABLE says both times, as the clock's next correction may
// mend it.
absl::Status CheckClock(const Certificate& coordinator, const Certificate& authority, absl::Time now);
// This machine's end of the way to the address, numeric. Nothing is sent. UNAVAILABLE: no way is known, or it ends in a
// link-local address, which is none without its interface.
absl::StatusOr<std::string> LocalEndOfWay(const std::string& address);

// Writes the identity into the folder; returns when its certificate expires, unless it is renewed by then. UNAVAILABLE: nobody
// answers there, or the clocks differ; FAILED_PRECONDITION: who answers is not the cluster of the token, or does not speak TLS;
// the coordinator's refusals (worker.proto); errors of files.
absl::StatusOr<absl::Time> JoinCluster(const JoinRequest& request, const IdentityFolder& folder,
                                       absl::Duration patience = absl::Seconds(10));

}  // namespace motley::worker
