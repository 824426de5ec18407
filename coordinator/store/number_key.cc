#include "coordinator/store/number_key.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/hmac.h"
#include "common/base/status_macros.h"

namespace motley::coordinator {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr size_t kTokenBytes = 16;
constexpr size_t kIdBytes = 8;

}  // namespace

absl::StatusOr<std::string> NumberKey::NewSecret() {
  MOTLEY_ASSIGN_OR_RETURN(const std::string random, RandomBytes(kSecretBytes));
  return absl::BytesToHexString(random);
}

NumberKey::NumberKey(std::string secret, std::string store_id)
    : secret_(std::move(secret)),
      store_id_(std::move(store_id)),
      id_(absl::BytesToHexString(HmacSha256(secret_, "id").substr(0, kIdBytes))) {}

// One text for one number: the purpose comes first, the only part that may hold anything, the job, stands between the store's id
// and the number, which have no spaces.
std::string NumberKey::Token(std::string_view what) const {
  return HmacSha256(secret_, absl::StrCat(std::string(what), " of store ", store_id_)).substr(0, kTokenBytes);
}

std::string NumberKey::TokenOf(const JobId& job, Epoch epoch) const {
  return Token(absl::StrCat("generation ", epoch.value(), " of job ", job.value()));
}

std::string NumberKey::MarkOf(const JobUid& uid, Epoch epoch, int64_t step, const std::string& manifest_digest) const {
  return absl::BytesToHexString(Token(absl::StrCat("checkpoint of step ", step, " of generation ", epoch.value(), " of uid ",
                                                   uid.value(), " ", manifest_digest)));
}

bool NumberKey::Marked(const std::string& mark, const JobUid& uid, Epoch epoch, int64_t step,
                       const std::string& manifest_digest) const {
  return EqualSecrets(mark, MarkOf(uid, epoch, step, manifest_digest));
}

std::string NumberKey::FilesSecretOf(const NodeName& node, int64_t incarnation) const {
  return HmacSha256(secret_, absl::StrCat("files of incarnation ", incarnation, " of node ", node.value()));
}

StoreMark NumberKey::WithToken(StoreMark mark) const {
  mark.token = Token(absl::StrCat("commits ", mark.commits));
  return mark;
}

bool NumberKey::Gave(const SeenEpoch& seen) const {
  return seen.key_id == id_ && seen.token.size() == kTokenBytes && EqualSecrets(seen.token, TokenOf(seen.job, seen.epoch));
}

bool NumberKey::Gave(const StoreMark& mark) const {
  return mark.store_id == store_id_ && mark.token.size() == kTokenBytes && EqualSecrets(mark.token, WithToken(mark).token);
}

}  // namespace motley::coordinator
