#include "coordinator/rpc/rotate_authority.h"

#include "common/base/status_macros.h"
#include "coordinator/members/joining.h"

namespace motley::coordinator {

absl::Status RotateAuthority(Core& core, const v1::RotateAuthorityRequest&, v1::RotateAuthorityResponse* response) {
  MOTLEY_RETURN_IF_ERROR(RotateAuthority(core));
  response->set_authority(core.authority->newest_number());
  return absl::OkStatus();
}

}  // namespace motley::coordinator
