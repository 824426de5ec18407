#include "common/session/files_ticket.h"

#include "absl/strings/str_cat.h"
#include "common/base/hmac.h"

namespace motley {
namespace {

constexpr size_t kProofBytes = 16;

// Neither a uid nor a digest has a space: one text for one ticket.
std::string Proof(const std::string& secret, const std::string& reader, const JobUid& uid, int64_t expires_unix_ms) {
  return HmacSha256(secret, absl::StrCat("files of job ", uid.value(), " for ", reader, " until ", expires_unix_ms))
      .substr(0, kProofBytes);
}

}  // namespace

FilesTicket MakeFilesTicket(const std::string& secret, const std::string& reader, const JobUid& uid, int64_t expires_unix_ms) {
  return {uid, expires_unix_ms, Proof(secret, reader, uid, expires_unix_ms)};
}

bool Admits(const std::string& secret, const FilesTicket& ticket, const std::string& reader, int64_t unix_ms) {
  return !secret.empty() && unix_ms < ticket.expires_unix_ms && ticket.proof.size() == kProofBytes &&
         EqualSecrets(ticket.proof, Proof(secret, reader, ticket.job_uid, ticket.expires_unix_ms));
}

}  // namespace motley
