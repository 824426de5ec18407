#include "coordinator/rpc/list_nodes.h"

#include "coordinator/rpc/views.h"

namespace motley::coordinator {

absl::Status ListNodes(Core& core, const v1::ListNodesRequest& request, v1::ListNodesResponse* response) {
  for (const auto& [name, node] : core.state.nodes) *response->add_nodes() = View(core.state, node);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
