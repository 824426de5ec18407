#include "worker/engine/transport/nccl_trial.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "worker/engine/nccl/nccl_causes.h"
#include "worker/engine/transport/nccl_first_calls.h"

namespace motley::engine {
namespace {

absl::Status MakeAndUse(const NcclApi& api, DeviceMemory& memory, void* stream, const NcclPatience& patience) {
  NcclMembership alone{.label = "trial", .name = "one rank", .ranks = 1, .rank = 0};
  if (const ncclResult_t result = api.ncclGetUniqueId(&alone.id); result != ncclSuccess)
    return absl::UnavailableError(absl::StrCat("NCCL makes no id: ", api.ncclGetErrorString(result)));
  absl::Mutex turn;
  MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<NcclComm> comm, NcclComm::Make(api, alone, turn, patience));
  const NcclFirstCall sum = [&](ncclComm_t handle, char* room) {
    return api.ncclAllReduce(room, room, 1, ncclFloat32, ncclSum, handle, stream);
  };
  absl::Status status = RunFirst({sum}, *comm, /*ranks=*/1, memory, stream, patience);
  if (!status.ok()) comm->Abort();
  return status;
}

}  // namespace

absl::Status TryNccl(const NcclLibrary& nccl, DeviceMemory& memory, void* stream, absl::Duration limit) {
  const absl::Status status = MakeAndUse(nccl.api, memory, stream, {limit, nullptr});
  if (status.ok()) return status;
  return absl::UnavailableError(
      absl::StrCat("NCCL at ", nccl.path, " does not work on this machine's card: ", status.message(),
                   "; likely cause: ", LikelyCause(std::string(status.message()), MachineLimitsHere())));
}

absl::Status EndsWithin(absl::Duration limit, const char* what, std::function<absl::Status()> call) {
  struct Answer {
    absl::Notification is_there;
    absl::Status status;
  };
  const auto answer = std::make_shared<Answer>();
  std::thread([answer, call = std::move(call)] {
    answer->status = call();
    answer->is_there.Notify();
  }).detach();
  if (answer->is_there.WaitForNotificationWithTimeout(limit)) return answer->status;
  return absl::UnavailableError(absl::StrCat(what, " has not ended within ", absl::FormatDuration(limit),
                                             "; likely cause: ", LikelyCause("", MachineLimitsHere())));
}

}  // namespace motley::engine
