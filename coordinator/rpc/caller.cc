#include "coordinator/rpc/caller.h"

#include "absl/strings/str_cat.h"
#include "common/rpc/tls_credentials.h"
#include "common/tls/certificate_authority.h"
#include "coordinator/rpc/peer_host.h"

namespace motley::coordinator {

absl::StatusOr<Caller> CallerOf(const grpc::CallbackServerContext& context) {
  Caller caller = {HostOfPeer(context.peer()), IsEncrypted(*context.auth_context()), std::nullopt};
  const std::optional<Certificate> shown = CertificateOf(*context.auth_context());
  if (!caller.by_tls || !shown) return caller;
  const absl::StatusOr<NodeName> node = motley::NodeOf(*shown);
  if (!node.ok()) return absl::UnauthenticatedError(std::string(node.status().message()));
  caller.key = NodeKey{*node, shown->PublicHash(), shown->ToPem()};
  return caller;
}

}  // namespace motley::coordinator
