#include "coordinator/rpc/join_node.h"

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "coordinator/members/joining.h"

namespace motley::coordinator {
namespace {

void NoteRefusal(Core& core, const std::string& host, const std::string& node, const absl::Status& why) {
  if (!core.refused_joins.Note(host, core.clock.Now())) return;
  EventRecord event;
  event.kind = kind::kJoinRefused;
  event.message =
      absl::StrCat("a machine at ", host, " that wants to be node ", Echo(node), " was refused: ", std::string(why.message()));
  core.Emit(std::move(event));
}

}  // namespace

absl::Status Join(Core& core, const Caller& caller, const v1::JoinRequest& request, v1::JoinResponse* response) {
  if (!caller.by_tls) {
    return absl::FailedPreconditionError(
        "this listener has no TLS and is for workers of the coordinator's own machine, which need no token: "
        "start motley-worker with worker.coordinator set to it");
  }
  if (core.refused_joins.IsTooEager(caller.host, core.clock.Now())) {
    return absl::ResourceExhaustedError(absl::StrCat("too many refused attempts from ", caller.host, "; wait a second"));
  }
  const absl::StatusOr<IssuedCertificate> issued =
      JoinNode(core, request.token(), NodeName(request.node()), request.signing_request(), caller.host);
  if (!issued.ok()) {
    NoteRefusal(core, caller.host, request.node(), issued.status());
    return issued.status();
  }
  response->set_certificate(issued->certificate);
  response->set_authorities(issued->authorities);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
