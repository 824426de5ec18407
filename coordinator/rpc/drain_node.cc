#include "coordinator/rpc/drain_node.h"

#include "common/base/status_macros.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/members/registry.h"
#include "coordinator/rpc/views.h"

namespace motley::coordinator {

absl::Status DrainNode(Core& core, const v1::DrainNodeRequest& request, v1::DrainNodeResponse* response) {
  const NodeName name(request.node());
  MOTLEY_RETURN_IF_ERROR(SetDrained(core, name, request.drain()));
  Drive(core);
  *response->mutable_node() = View(core.state, core.state.nodes.at(name));
  return absl::OkStatus();
}

}  // namespace motley::coordinator
