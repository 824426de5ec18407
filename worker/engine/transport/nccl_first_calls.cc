#include "worker/engine/transport/nccl_first_calls.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/engine/transport/nccl_collectives.h"

namespace motley::engine {
namespace {

constexpr int64_t kLargestElementBytes = 8;

}  // namespace

std::vector<NcclFirstCall> FirstByte(const NcclApi& api, bool sends, int peer, void* stream) {
  return {[&api, sends, peer, stream](ncclComm_t handle, char* room) {
    return sends ? api.ncclSend(room, 1, ncclUint8, peer, handle, stream)
                 : api.ncclRecv(room, 1, ncclUint8, peer, handle, stream);
  }};
}

std::vector<NcclFirstCall> FirstCollectives(const NcclApi& api, const std::vector<DType>& types, int mine, void* stream) {
  std::vector<NcclFirstCall> calls;
  for (const DType dtype : types) {
    const ncclDataType_t type = NcclTypeOf(dtype);
    const int64_t own = mine * SizeOfBytes(dtype);
    calls.push_back([&api, type, own, stream](ncclComm_t handle, char* room) {
      return api.ncclAllGather(room + own, room, 1, type, handle, stream);
    });
    calls.push_back([&api, type, own, stream](ncclComm_t handle, char* room) {
      return api.ncclReduceScatter(room, room + own, 1, type, ncclSum, handle, stream);
    });
    calls.push_back([&api, type, stream](ncclComm_t handle, char* room) {
      return api.ncclAllReduce(room, room, 1, type, ncclSum, handle, stream);
    });
    calls.push_back([&api, type, stream](ncclComm_t handle, char* room) {
      return api.ncclBroadcast(room, room, 1, type, 0, handle, stream);
    });
    calls.push_back([&api, type, stream](ncclComm_t handle, char* room) {
      return api.ncclReduce(room, room, 1, type, ncclSum, 0, handle, stream);
    });
  }
  return calls;
}

absl::Status RunFirst(const std::vector<NcclFirstCall>& calls, NcclComm& comm, int ranks, DeviceMemory& memory, void* stream,
                      const NcclPatience& patience) {
  if (calls.empty()) return absl::OkStatus();
  MOTLEY_ASSIGN_OR_RETURN(void* const room, memory.Allocate(ranks * kLargestElementBytes, stream));
  absl::Status status;
  for (const NcclFirstCall& call : calls) {
    status = comm.Enqueue([&](ncclComm_t handle) { return call(handle, static_cast<char*>(room)); }, patience);
    if (status.ok()) {
      status =
          PollUntil(absl::StrCat("NCCL of ", comm.name(), ": its first calls"), patience, [&] { return memory.IsDone(stream); });
    }
    if (!status.ok()) break;
  }
  memory.Free(room);
  return status;
}

}  // namespace motley::engine
