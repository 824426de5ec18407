#include "coordinator/rpc/list_nodes.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "coordinator/rpc/page.h"
#include "coordinator/rpc/views.h"

namespace motley::coordinator {

absl::Status ListNodes(Core& core, const v1::ListNodesRequest& request, v1::ListNodesResponse* response) {
  std::vector<std::pair<std::string, const NodeRecord*>> nodes;
  for (const auto& [name, node] : core.state.nodes) {
    if (!node.forgotten) nodes.emplace_back(name.value(), &node);
  }
  MOTLEY_ASSIGN_OR_RETURN(*response->mutable_next_page_token(),
                          AddPage(nodes, request.page_size(), request.page_token(), [&](const NodeRecord& node) {
                            v1::Node* view = response->add_nodes();
                            *view = View(core.state, node);
                            return view->ByteSizeLong();
                          }));
  return absl::OkStatus();
}

}  // namespace motley::coordinator
