#include "worker/engine/transport/meeting_words.h"

#include <arpa/inet.h>

#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/gmac.h"
#include "common/base/hmac.h"
#include "common/base/status_macros.h"

namespace motley::engine {
namespace {

constexpr char kHello[] = "MOTLEY-h", kWelcome[] = "MOTLEY-w", kConfirm[] = "MOTLEY-c";

// Both have a fixed length, so one's end is not the other's beginning.
std::string Secret(const MeetingPair& pair) { return absl::StrCat(pair.callees_secret, pair.callers_secret); }

std::string Proof(const MeetingPair& pair, const std::string& said) { return HmacSha256(Secret(pair), said); }

// A word, then its proof over what was said before and the word.
std::string Proven(const MeetingPair& pair, const std::string& before, const std::string& word) {
  return absl::StrCat(word, Proof(pair, absl::StrCat(before, word)));
}

std::string Numbers(const MeetingPair& pair) {
  const uint32_t numbers[] = {htonl(static_cast<uint32_t>(pair.caller)), htonl(static_cast<uint32_t>(pair.callee)),
                              htonl(pair.channel)};
  return std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers));
}

// Of a word that begins with its tag and a nonce.
std::string NonceOf(const std::string& said) { return said.substr(kTagBytes, kNonceBytes); }

}  // namespace

std::string Hello(const MeetingPair& pair, const std::string& nonce) {
  return Proven(pair, "", absl::StrCat(kHello, nonce, Numbers(pair)));
}
bool IsHello(const MeetingPair& pair, const std::string& said) {
  return said.size() == kHelloBytes && EqualSecrets(said, Hello(pair, NonceOf(said)));
}

std::string Welcome(const MeetingPair& pair, const std::string& hello, const std::string& nonce) {
  return Proven(pair, hello, absl::StrCat(kWelcome, nonce));
}
bool IsWelcome(const MeetingPair& pair, const std::string& hello, const std::string& said) {
  return said.size() == kWelcomeBytes && EqualSecrets(said, Welcome(pair, hello, NonceOf(said)));
}

std::string Confirm(const MeetingPair& pair, const std::string& hello, const std::string& welcome) {
  return Proven(pair, absl::StrCat(hello, welcome), kConfirm);
}
bool IsConfirm(const MeetingPair& pair, const std::string& hello, const std::string& welcome, const std::string& said) {
  return EqualSecrets(said, Confirm(pair, hello, welcome));
}

absl::StatusOr<ConnectionKeys> KeysOf(const MeetingPair& pair, const std::string& hello, const std::string& welcome) {
  const std::string said = absl::StrCat(hello, welcome);  // both nonces, the ranks and the channel
  ConnectionKeys keys;
  MOTLEY_ASSIGN_OR_RETURN(keys.callers, HkdfSha256(Secret(pair), said, "motley: the caller's messages", Gmac::kKeyBytes));
  MOTLEY_ASSIGN_OR_RETURN(keys.callees, HkdfSha256(Secret(pair), said, "motley: the callee's messages", Gmac::kKeyBytes));
  return keys;
}

}  // namespace motley::engine
