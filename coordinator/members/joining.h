// Machines become nodes and cease to be: tokens, certificates, and the cluster's authority. All on the loop.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/tls/join_token.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

inline constexpr absl::Duration kLongestTokenLife = absl::Hours(24 * 90);
inline constexpr size_t kMostTokens = 1000;

// Loads authority, tokens and members; makes the authority where there is none. At start, before anybody is let in.
absl::Status LoadMembers(Core& core);

// FAILED_PRECONDITION: workers show no certificates here; INVALID_ARGUMENT: a life of less than a second or more than
// kLongestTokenLife; RESOURCE_EXHAUSTED: kMostTokens are open. Durable when it returns. Nobody sees the secret again.
absl::StatusOr<JoinToken> MakeToken(Core& core, absl::Duration life, bool reusable);
// Of a token that is known: what the steady clock counted, and the wall clock where no steady one did.
absl::Duration TokenAge(Core& core, const TokenRecord& token);
// NOT_FOUND: there is none of this id.
absl::Status RevokeToken(Core& core, const std::string& id);

struct IssuedCertificate {
  std::string certificate;  // PEM, the node's
  std::string authorities;  // PEM, all that it is to believe
};
// What of the machine counts is its token, the name that it wants and the request's key. DecideJoin's errors; INVALID_ARGUMENT:
// the token or the request. `host`: whence it came, for people. Durable when it returns; asked again with the same key and token
// it gives a certificate again.
absl::StatusOr<IssuedCertificate> JoinNode(Core& core, std::string_view token, const NodeName& node, std::string_view request,
                                           const std::string& host);
// A new certificate for a member's own key. PERMISSION_DENIED: the request is of another key than the member's;
// RESOURCE_EXHAUSTED: it got one a moment ago. Whether it has it is known when it says so (NoteStored) or shows it.
absl::StatusOr<IssuedCertificate> RenewNode(Core& core, const NodeName& node, std::string_view request);

// The member has stored the certificate of this hash.
void NoteStored(Core& core, const NodeName& node, const std::string& certificate_hash);
// The member has a certificate that the authority of this number signed.
void NoteAuthority(Core& core, const NodeName& node, int64_t authority);

// The node is a member no more: its session ends now and it is not let in again. NOT_FOUND: no member has the name.
absl::Status ForgetNode(Core& core, const NodeName& node);

// A member is told whom to believe; it has its certificate renewed where the newest of them did not sign it.
void TellAuthorities(Core& core, const NodeName& node);
// A new key for the authority: members are told to renew, and when all have, the old one ends by itself (EndOldAuthority).
// FAILED_PRECONDITION: a change is under way; says who has not renewed.
absl::Status RotateAuthority(Core& core);
// Once every member's certificate is the newest authority's, the others end. For a periodic job.
void EndOldAuthority(Core& core);
// The coordinator's own certificate is renewed before it expires, and its files are written again where they do not fit. For a
// periodic job.
void KeepOwnFiles(Core& core);

// Where the coordinator's own files lie.
std::string TlsFolder(const Config& config);

}  // namespace motley::coordinator
