#include "common/tls/node_identity.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/tls/certificate.h"
#include "common/tls/certificate_authority.h"
#include "common/tls/private_key.h"

namespace motley {
namespace {

constexpr char kJoin[] =
    "join again: motley-worker --join TOKEN, with a token from 'motley node token' on the coordinator's machine";

template <typename... Parts>
absl::Status Unfit(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}

std::string DateOf(absl::Time time) { return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone()); }

// Whether the clock or the certificate is wrong, nobody here knows: after a start without a battery it is the clock, and the next
// correction mends it.
absl::Status CheckTime(const Certificate& certificate, absl::Time now) {
  const bool early = now < certificate.not_before();
  if (!early && now < certificate.not_after()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the node's certificate ",
                                             early ? absl::StrCat("is valid from ", DateOf(certificate.not_before()), " on")
                                                   : absl::StrCat("expired on ", DateOf(certificate.not_after())),
                                             ", and this machine's clock says ", DateOf(now), ": set the clock where it is ",
                                             early ? "behind" : "ahead", ", else ", kJoin));
}

}  // namespace

absl::Status CheckIdentity(const NodeIdentity& identity, const NodeName& node, absl::Time now) {
  const absl::StatusOr<PrivateKey> key = PrivateKey::FromPem(identity.key);
  if (!key.ok()) return Unfit("the node's key: ", std::string(key.status().message()), "; ", kJoin);
  const auto own = Certificate::FromPem(identity.certificate);
  if (!own.ok()) return Unfit("the node's certificate: ", std::string(own.status().message()), "; ", kJoin);
  const auto authorities = Certificate::FromPem(identity.authorities);
  if (!authorities.ok()) return Unfit("the cluster's authority: ", std::string(authorities.status().message()), "; ", kJoin);
  const Certificate& certificate = own->front();
  if (certificate.PublicHash() != key->PublicHash()) return Unfit("the node's certificate is of another key; ", kJoin);
  const bool is_ours = std::any_of(authorities->begin(), authorities->end(),
                                   [&](const Certificate& authority) { return certificate.IsSignedBy(authority); });
  if (!is_ours) return Unfit("the node's certificate is of another cluster than its authority's; ", kJoin);
  const absl::StatusOr<NodeName> named = NodeOf(certificate);
  if (!named.ok()) return Unfit(std::string(named.status().message()), "; ", kJoin);
  if (*named != node) return Unfit("the certificate is of node ", named->value(), ", this node is ", node.value(), "; ", kJoin);
  return CheckTime(certificate, now);
}

absl::Time RenewalOf(const NodeIdentity& identity) {
  const auto own = Certificate::FromPem(identity.certificate);
  if (!own.ok()) return absl::InfinitePast();
  const absl::Time begin = own->front().not_before(), end = own->front().not_after();
  return end - (end - begin - kClocksDiffer) / 3;
}

}  // namespace motley
