// The cluster's certificate authority as its rows have it: one key, or two while the cluster changes to a new one. The newest
// signs nodes. The coordinator shows itself by the oldest, which every node believes until all have the new one.
// Thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/tls_credentials.h"
#include "common/tls/certificate_authority.h"
#include "coordinator/state/member.h"

namespace motley::coordinator {

// A new key; `number` is above all that were given.
absl::StatusOr<AuthorityRecord> NewAuthority(int64_t number, absl::Time now);

class ClusterAuthority {
 public:
  // The oldest first, at least one. DATA_LOSS: a record cannot be read.
  static absl::StatusOr<ClusterAuthority> FromRecords(const std::vector<AuthorityRecord>& records);

  const CertificateAuthority& newest() const { return keys_.back(); }
  const CertificateAuthority& oldest() const { return keys_.front(); }
  bool changes() const { return keys_.size() > 1; }
  int64_t newest_number() const { return newest_number_; }
  // PEM of all certificates: what a node believes the coordinator by, and the coordinator its nodes.
  std::string Certificates() const;

  // What the server shows, as files in a folder of mode 0700 that only its user reads: a key and a certificate of the term for
  // the given time, and whom it believes. `with_key`: the key is made anew, too. Errors of files.
  static TlsFiles FilesIn(const std::string& folder);
  absl::Status WriteFiles(const std::string& folder, int64_t term, absl::Time now, bool with_key) const;
  // Whether less than a third of the certificate's time is left, or it cannot be read.
  static bool OwnIsOld(const std::string& folder, absl::Time now);

 private:
  ClusterAuthority(std::vector<CertificateAuthority> keys, int64_t newest) : keys_(std::move(keys)), newest_number_(newest) {}
  std::vector<CertificateAuthority> keys_;
  int64_t newest_number_ = 0;
};

// Of the coordinator's own certificate; written anew when a third of it is left.
inline constexpr absl::Duration kOwnCertificateLifetime = absl::Hours(24 * 90);

}  // namespace motley::coordinator
