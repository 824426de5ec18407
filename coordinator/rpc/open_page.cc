#include "coordinator/rpc/open_page.h"

namespace motley::coordinator {

absl::Status OpenPage(Core& core, const v1::OpenPageRequest&, v1::OpenPageResponse* response) {
  if (core.page.address.empty()) {
    return absl::FailedPreconditionError(
        "the coordinator serves no page: server.metrics is empty; set it, say to 127.0.0.1:7071");
  }
  response->set_address(core.page.address);
  response->set_key(core.page.key);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
