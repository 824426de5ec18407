// What a NCCL communicator runs right after it is made, while nothing else goes on. Private to the engine. docs/inside/nccl.md
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/dtype.h"
#include "worker/engine/nccl/nccl_comm.h"
#include "worker/engine/transport/device_memory.h"

namespace motley::engine {

using NcclFirstCall = std::function<ncclResult_t(ncclComm_t, char* room)>;

// Of a pair: NCCL connects it in its first hand-over, in which each end waits for the other inside a call. In a step what the
// lane was given before it would wait, too. `peer`: the other end's rank in the pair's communicator.
std::vector<NcclFirstCall> FirstByte(const NcclApi& api, bool sends, int peer, void* stream);

// Of a group: each kind of collective of each type, on one element a member. CUDA may wait for the whole card where a kernel is
// launched for the first time; in a step a receive may be on it that waits for its peer. `mine`: this rank's place.
std::vector<NcclFirstCall> FirstCollectives(const NcclApi& api, const std::vector<DType>& types, int mine, void* stream);

// Each by itself, each waited for. `ranks`: of the communicator. Errors of NcclComm and of the memory; UNAVAILABLE: it took
// longer than the patience.
absl::Status RunFirst(const std::vector<NcclFirstCall>& calls, NcclComm& comm, int ranks, DeviceMemory& memory, void* stream,
                      const NcclPatience& patience);

}  // namespace motley::engine
