#include "coordinator/rpc/join_tokens.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "coordinator/members/joining.h"
#include "coordinator/state/joining.h"

namespace motley::coordinator {
namespace {

constexpr absl::Duration kUsualLife = absl::Hours(1);

const char* StateOf(Core& core, const TokenRecord& token) {
  if (IsExpired(token, core.journal.UnixMs(), TokenAge(core, token))) return "expired";
  return !token.reusable && token.joins > 0 ? "used" : "open";
}

}  // namespace

absl::Status CreateToken(Core& core, const v1::CreateTokenRequest& request, v1::CreateTokenResponse* response) {
  const absl::Duration life = request.ttl_seconds() == 0 ? kUsualLife : absl::Seconds(request.ttl_seconds());
  MOTLEY_ASSIGN_OR_RETURN(const JoinToken token, MakeToken(core, life, request.reusable()));
  response->set_token(ToText(token));
  response->set_id(token.id);
  response->set_workers_listen(core.config.workers_listen);
  response->set_expires_unix_ms(core.state.tokens.at(token.id).expires_unix_ms);
  return absl::OkStatus();
}

absl::Status ListTokens(Core& core, const v1::ListTokensRequest&, v1::ListTokensResponse* response) {
  for (const auto& [id, token] : core.state.tokens) {
    v1::Token* view = response->add_tokens();
    view->set_id(id);
    view->set_reusable(token.reusable);
    view->set_joins(token.joins);
    view->set_made_unix_ms(token.made_unix_ms);
    view->set_expires_unix_ms(token.expires_unix_ms);
    view->set_state(StateOf(core, token));
  }
  std::sort(response->mutable_tokens()->begin(), response->mutable_tokens()->end(),
            [](const v1::Token& a, const v1::Token& b) { return a.made_unix_ms() > b.made_unix_ms(); });
  return absl::OkStatus();
}

absl::Status RevokeToken(Core& core, const v1::RevokeTokenRequest& request, v1::RevokeTokenResponse*) {
  return RevokeToken(core, request.id());
}

}  // namespace motley::coordinator
