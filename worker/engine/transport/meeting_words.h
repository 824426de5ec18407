// What two ranks say as they meet. Each proves that it knows the secrets of both, which the coordinator alone gave it, and sends
// neither: who listens on the network learns nothing to call with later. Private to the engine.
//
//   caller                                    callee
//   Hello: a nonce, whom it means, proof ──>
//                                        <──  Welcome: a nonce, proof
//   Confirm: proof                       ──>
//
// A proof is an HMAC-SHA256 by both secrets over the word and all that was said before it: of another meeting, or said again, it
// proves nothing.
//
// The same secrets and words make the keys by which the connection's messages are authenticated afterwards (segment_socket.h).
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "worker/engine/transport/channel.h"

namespace motley::engine {

inline constexpr size_t kTagBytes = 8, kNonceBytes = 16, kProofBytes = 32;
inline constexpr size_t kHelloBytes = kTagBytes + kNonceBytes + 3 * 4 + kProofBytes;
inline constexpr size_t kWelcomeBytes = kTagBytes + kNonceBytes + kProofBytes;
inline constexpr size_t kConfirmBytes = kTagBytes + kProofBytes;

// One connection that two ranks mean.
struct MeetingPair {
  std::string callers_secret, callees_secret;
  int caller = 0, callee = 0;  // ranks
  Channel channel = 0;
};

std::string Hello(const MeetingPair& pair, const std::string& nonce);
bool IsHello(const MeetingPair& pair, const std::string& said);
// `hello` is the one that it answers.
std::string Welcome(const MeetingPair& pair, const std::string& hello, const std::string& nonce);
bool IsWelcome(const MeetingPair& pair, const std::string& hello, const std::string& said);
std::string Confirm(const MeetingPair& pair, const std::string& hello, const std::string& welcome);
bool IsConfirm(const MeetingPair& pair, const std::string& hello, const std::string& welcome, const std::string& said);

// One for each direction of a connection, of Gmac::kKeyBytes: each of its own, since a connection has nonces of its own.
struct ConnectionKeys {
  std::string callers, callees;  // of what that end sends
};
// INTERNAL: OpenSSL refused.
absl::StatusOr<ConnectionKeys> KeysOf(const MeetingPair& pair, const std::string& hello, const std::string& welcome);

}  // namespace motley::engine
