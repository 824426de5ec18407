#include "coordinator/rpc/forget_node.h"

#include "common/base/status_macros.h"
#include "coordinator/epoch/disk_looks.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/members/joining.h"

namespace motley::coordinator {

absl::Status ForgetNode(Core& core, const v1::ForgetNodeRequest& request, v1::ForgetNodeResponse*) {
  MOTLEY_RETURN_IF_ERROR(ForgetNode(core, NodeName(request.node())));
  MOTLEY_RETURN_IF_ERROR(ForgetUnwanted(core, NodeName(request.node())));
  Drive(core);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
