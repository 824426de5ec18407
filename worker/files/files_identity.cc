#include "worker/files/files_identity.h"

#include "common/base/status_macros.h"
#include "common/tls/certificate_authority.h"

namespace motley::worker {

// An authority's certificate is one that signed itself; nobody here looks at more of it than its digest.
absl::StatusOr<FilesIdentity> MakeFilesIdentity(absl::Time now) {
  MOTLEY_ASSIGN_OR_RETURN(const CertificateAuthority made, CertificateAuthority::Make(now));
  MOTLEY_ASSIGN_OR_RETURN(std::string key, made.KeyPem());
  return FilesIdentity{std::move(key), made.certificate().ToPem(), made.certificate().Hash()};
}

}  // namespace motley::worker
