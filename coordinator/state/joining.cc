#include "coordinator/state/joining.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/duration_text.h"
#include "common/base/hmac.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"

namespace motley::coordinator {
namespace {

absl::Duration LifeOf(const TokenRecord& token) { return absl::Milliseconds(token.expires_unix_ms - token.made_unix_ms); }

std::string TimeOf(int64_t unix_ms) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixMillis(unix_ms), absl::UTCTimeZone());
}

template <typename... Parts>
absl::Status NotLetIn(const Parts&... parts) {
  return absl::UnauthenticatedError(absl::StrCat(parts..., "; 'motley node token' on the coordinator's machine gives a new one"));
}

template <typename... Parts>
absl::Status Denied(const Parts&... parts) {
  return absl::PermissionDeniedError(absl::StrCat(parts...));
}

constexpr char kJoinAgain[] = "; join again with a token (motley-worker --join TOKEN)";

}  // namespace

bool IsExpired(const TokenRecord& token, int64_t unix_ms, absl::Duration age) {
  return unix_ms >= token.expires_unix_ms || age >= LifeOf(token);
}

absl::StatusOr<JoinDecision> DecideJoin(const ClusterState& state, const JoinAttempt& attempt) {
  MOTLEY_RETURN_IF_ERROR(CheckName("node", attempt.node.value()));
  const auto token = state.tokens.find(attempt.token_id);
  // Which of the two is wrong is not said: only who has the secret learns more.
  if (token == state.tokens.end() || !EqualSecrets(token->second.secret_hash, attempt.secret_hash)) {
    return NotLetIn("the token is not known here: it was mistyped or revoked, or is long expired");
  }
  if (attempt.unix_ms >= token->second.expires_unix_ms)
    return NotLetIn("the token expired at ", TimeOf(token->second.expires_unix_ms));
  if (IsExpired(token->second, attempt.unix_ms, attempt.token_age))
    return NotLetIn("the token was good for ", DurationText(LifeOf(token->second)), ", and is older");
  JoinDecision decision = {token->second, true};
  if (const auto member = state.members.find(attempt.node); member != state.members.end()) {
    decision.is_new = false;
    // Its answer was lost; or its certificate has expired, and it joins again with another token.
    const bool same_token = member->second.token == token->first;
    const bool open = token->second.reusable || token->second.joins == 0;
    if (member->second.key_hash == attempt.key_hash && (same_token || open)) {
      if (!same_token) ++decision.token.joins;
      return decision;
    }
    return absl::AlreadyExistsError(absl::StrCat(
        "node ", attempt.node.value(), " is a member since ", TimeOf(member->second.joined_unix_ms), "; 'motley node forget ",
        attempt.node.value(), "' on the coordinator's machine frees the name, or give ", "this machine another one with --node"));
  }
  if (!token->second.reusable && token->second.joins > 0) return NotLetIn("the token was used already");
  if (const auto node = state.nodes.find(attempt.node); node != state.nodes.end() && node->second.connected) {
    return absl::AlreadyExistsError(absl::StrCat("a worker named ", attempt.node.value(),
                                                 " is connected without a certificate; stop it, or give this machine another ",
                                                 "name with --node"));
  }
  ++decision.token.joins;
  return decision;
}

absl::Status CheckCaller(const ClusterState& state, const NodeName& said, const std::optional<NodeKey>& identity) {
  const auto member = state.members.find(said);
  if (!identity) {
    if (member == state.members.end()) return absl::OkStatus();
    return Denied("node ", said.value(),
                  " is a member and comes by its certificate; this worker came without one: set worker.coordinator to the TLS "
                  "address, or move its worker.toml "
                  "away and join");
  }
  if (identity->node != said) {
    return Denied("the certificate is of node ", identity->node.value(), ", and the worker says to be ", said.value(),
                  "; set worker.name to the former, or join again");
  }
  if (member == state.members.end()) return Denied("node ", said.value(), " is no member of this cluster any more", kJoinAgain);
  if (member->second.key_hash == identity->key_hash) return absl::OkStatus();
  return Denied("node ", said.value(), " joined again on ", TimeOf(member->second.joined_unix_ms),
                " with another key, and this one counts no more", kJoinAgain);
}

std::vector<std::string> TokensToEnd(const ClusterState& state, const std::map<std::string, absl::Duration>& ages) {
  std::vector<std::string> ended;
  for (const auto& [id, token] : state.tokens) {
    if (ages.at(id) > LifeOf(token) + absl::Hours(24)) ended.push_back(id);
  }
  return ended;
}

}  // namespace motley::coordinator
