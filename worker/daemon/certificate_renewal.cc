#include "worker/daemon/certificate_renewal.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/tls/certificate.h"

namespace motley::worker {
namespace {

constexpr absl::Duration kAskAgain = absl::Seconds(10);

absl::StatusOr<std::string> RequestOf(const IdentityFolder& folder) {
  MOTLEY_ASSIGN_OR_RETURN(const PrivateKey key, folder.LoadKey());
  return key.SigningRequest();
}

absl::Status CheckAuthorities(const std::string& pem) {
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<Certificate> certificates, Certificate::FromPem(pem));
  const bool all = std::all_of(certificates.begin(), certificates.end(), [](const Certificate& c) { return c.IsAuthority(); });
  return all ? absl::OkStatus() : absl::InvalidArgumentError("one of them is no authority's certificate");
}

}  // namespace

CertificateRenewal::CertificateRenewal(IdentityFolder folder, NodeName node)
    : folder_(std::move(folder)), node_(std::move(node)) {
  Reckon();
}

void CertificateRenewal::Reckon() {
  const absl::StatusOr<NodeIdentity> identity = folder_.Load();
  renew_at_ = identity.ok() ? RenewalOf(*identity) : absl::InfinitePast();
  if (!identity.ok()) return;
  // The newest authority's alone: while the cluster changes to it, the old one's counts only as long as others need it.
  const auto own = Certificate::FromPem(identity->certificate), authorities = Certificate::FromPem(identity->authorities);
  if (own.ok() && authorities.ok() && !own->front().IsSignedBy(authorities->back())) renew_at_ = absl::InfinitePast();
}

std::optional<RenewalReport> CertificateRenewal::Due(absl::Time now) {
  // A clock that was ahead when it was asked for is no reason to wait for that time.
  if (ask_again_ - now > kAskAgain) ask_again_ = now;
  if (now < renew_at_ || now < ask_again_) return std::nullopt;
  ask_again_ = now + kAskAgain;
  absl::StatusOr<std::string> request = RequestOf(folder_);
  if (request.ok()) return RenewalReport{*std::move(request), ""};
  LogError(absl::StrCat("no new certificate can be asked for: ", std::string(request.status().message())));
  return std::nullopt;
}

void CertificateRenewal::OnAuthorities(const AuthoritiesCommand& command) {
  const absl::StatusOr<NodeIdentity> identity = folder_.Load();
  if (identity.ok() && identity->authorities == command.authorities) return;
  absl::Status status = CheckAuthorities(command.authorities);
  if (status.ok()) status = folder_.SaveAuthorities(command.authorities);
  status.ok() ? LogInfo("the cluster's authorities changed")
              : LogError(absl::StrCat("the cluster's new authorities could not be stored: ", std::string(status.message())));
  Reckon();
}

std::optional<RenewalReport> CertificateRenewal::OnCertificate(const CertificateCommand& command, absl::Time now) {
  absl::StatusOr<NodeIdentity> identity = folder_.Load();
  absl::Status status = command.error.empty() ? identity.status() : absl::FailedPreconditionError(command.error);
  if (status.ok()) {
    identity->certificate = command.certificate;
    status = CheckIdentity(*identity, node_, now);
  }
  if (status.ok()) status = folder_.SaveCertificate(command.certificate);
  if (status.ok()) {
    LogInfo("the node's certificate was renewed");
  } else {
    LogError(absl::StrCat("the node's certificate was not renewed: ", std::string(status.message()), "; asking again"));
  }
  Reckon();
  return status.ok() ? std::optional(RenewalReport{"", Sha256Hex(command.certificate)}) : std::nullopt;
}

}  // namespace motley::worker
