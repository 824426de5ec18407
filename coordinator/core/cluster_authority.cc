#include "coordinator/core/cluster_authority.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace motley::coordinator {
namespace {

constexpr int64_t kLargestKeyBytes = 16 << 10;
constexpr mode_t kFolderMode = 0700, kFileMode = 0600;

}  // namespace

absl::StatusOr<AuthorityRecord> NewAuthority(int64_t number, absl::Time now) {
  MOTLEY_ASSIGN_OR_RETURN(const CertificateAuthority made, CertificateAuthority::Make(now));
  MOTLEY_ASSIGN_OR_RETURN(std::string key, made.KeyPem());
  return AuthorityRecord{number, std::move(key), made.certificate().ToPem(), absl::ToUnixMillis(now)};
}

absl::StatusOr<ClusterAuthority> ClusterAuthority::FromRecords(const std::vector<AuthorityRecord>& records) {
  std::vector<CertificateAuthority> keys;
  std::vector<int64_t> numbers;
  for (const AuthorityRecord& record : records) {
    auto key = CertificateAuthority::FromPem(record.private_key, record.certificate);
    if (!key.ok()) {
      return absl::DataLossError(
          absl::StrCat("the cluster's authority number ", record.number, ": ", std::string(key.status().message())));
    }
    keys.push_back(*std::move(key));
    numbers.push_back(record.number);
  }
  if (keys.empty()) return absl::DataLossError("the cluster has no authority");
  return ClusterAuthority(std::move(keys), std::move(numbers));
}

int64_t ClusterAuthority::NumberOf(const std::string& certificate) const {
  const auto read = Certificate::FromPem(certificate);
  for (size_t i = 0; read.ok() && i < keys_.size(); ++i) {
    if (read->front().IsSignedBy(keys_[i].certificate())) return numbers_[i];
  }
  return 0;
}

std::string ClusterAuthority::Certificates() const {
  std::string all;
  for (const CertificateAuthority& key : keys_) absl::StrAppend(&all, key.certificate().ToPem());
  return all;
}

TlsFiles ClusterAuthority::FilesIn(const std::string& folder) {
  return {folder + "/coordinator.key", folder + "/coordinator.crt", folder + "/authorities.crt"};
}

absl::Status ClusterAuthority::WriteFiles(const std::string& folder, const Term& term, absl::Time now, bool with_key) const {
  const TlsFiles files = FilesIn(folder);
  if (mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST) return FileError(errno, "make", folder);
  if (with_key) {
    MOTLEY_ASSIGN_OR_RETURN(const PrivateKey key, PrivateKey::Make());
    MOTLEY_ASSIGN_OR_RETURN(const std::string pem, key.ToPem());
    MOTLEY_RETURN_IF_ERROR(ReplaceFileDurably(files.key, pem, kFileMode));
  }
  MOTLEY_ASSIGN_OR_RETURN(const std::string pem, ReadSmallFile(files.key, kLargestKeyBytes));
  MOTLEY_ASSIGN_OR_RETURN(const PrivateKey key, PrivateKey::FromPem(pem));
  MOTLEY_ASSIGN_OR_RETURN(const std::string request, key.SigningRequest());
  MOTLEY_ASSIGN_OR_RETURN(const Certificate own, oldest().IssueCoordinator(term, request, now, kOwnCertificateLifetime));
  MOTLEY_RETURN_IF_ERROR(
      ReplaceFileDurably(files.certificates, absl::StrCat(own.ToPem(), oldest().certificate().ToPem()), kFileMode));
  return ReplaceFileDurably(files.authorities, Certificates(), kFileMode);
}

bool ClusterAuthority::FilesFit(const std::string& folder, const Term& term, absl::Time now) const {
  const TlsFiles files = FilesIn(folder);
  const absl::StatusOr<std::string> key = ReadSmallFile(files.key, kLargestKeyBytes),
                                    authorities = ReadSmallFile(files.authorities, kLargestKeyBytes),
                                    shown = ReadSmallFile(files.certificates, kLargestKeyBytes);
  if (!key.ok() || !authorities.ok() || !shown.ok() || *authorities != Certificates()) return false;
  const auto own = Certificate::FromPem(*shown);
  const auto own_key = PrivateKey::FromPem(*key);
  if (!own.ok() || !own_key.ok() || own->front().PublicHash() != own_key->PublicHash()) return false;
  const Certificate& certificate = own->front();
  const auto shown_term = TermOf(certificate);
  if (!shown_term.ok() || *shown_term != term) return false;
  const absl::Duration left = certificate.not_after() - now;
  return certificate.IsSignedBy(oldest().certificate()) && now >= certificate.not_before() &&
         left > kOwnCertificateLifetime / 3 && left <= kOwnCertificateLifetime;
}

}  // namespace motley::coordinator
