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
  // Of the one that signed the certificate (PEM); 0: none of these.
  int64_t NumberOf(const std::string& certificate) const;
  int64_t newest_number() const { return numbers_.back(); }
  // PEM of all certificates: what a node believes the coordinator by, and the coordinator its nodes.
  std::string Certificates() const;

  // What the server shows, as files in a folder of mode 0700 that only its user reads: a key and a certificate of the term for
  // the given time, and whom it believes. `with_key`: the key is made anew, too. Errors of files.
  static TlsFiles FilesIn(const std::string& folder);
  absl::Status WriteFiles(const std::string& folder, const Term& term, absl::Time now, bool with_key) const;
  // Whether these files are there and say what this authority would write: the certificate of its oldest key, of the term, for a
  // time that is neither to come nor two thirds over, and all whom to believe.
  bool FilesFit(const std::string& folder, const Term& term, absl::Time now) const;

 private:
  ClusterAuthority(std::vector<CertificateAuthority> keys, std::vector<int64_t> numbers)
      : keys_(std::move(keys)), numbers_(std::move(numbers)) {}
  std::vector<CertificateAuthority> keys_;
  std::vector<int64_t> numbers_;  // of each
};

// Of the coordinator's own certificate; written anew when a third of it is left.
inline constexpr absl::Duration kOwnCertificateLifetime = absl::Hours(24 * 90);

}  // namespace motley::coordinator
