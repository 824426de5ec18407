// Collectives with uneven owners over one NCCL communicator. Private to the engine. docs/inside/nccl.md
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/dtype.h"
#include "worker/engine/nccl/nccl_comm.h"
#include "worker/engine/transport/collective_way.h"
#include "worker/engine/transport/device_memory.h"

namespace motley::engine {

// Used by one thread. All on one stream, one after another, so one piece of room for slots serves all communicators.
class NcclCollectives {
 public:
  NcclCollectives(const NcclApi& api, DeviceMemory& memory, void* stream, const NcclCosts& costs)
      : api_(api), memory_(memory), stream_(stream), costs_(costs) {}
  ~NcclCollectives();
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  // Makes the room that collectives with these owners want. Without it they make it themselves.
  absl::Status Reserve(DType dtype, const Owners& owners);
  // Puts the collective on the stream. `member`: this rank's place among the owners.
  absl::Status AllGather(NcclComm& comm, int member, char* array, DType dtype, const Owners& owners,
                         const NcclPatience& patience);
  absl::Status ReduceScatter(NcclComm& comm, int member, char* array, DType dtype, const Owners& owners,
                             const NcclPatience& patience);

 private:
  absl::Status PaddedAllGather(NcclComm& comm, int member, char* array, DType dtype, const Owners& owners, int64_t slot_elements,
                               const NcclPatience& patience);
  absl::Status PaddedReduceScatter(NcclComm& comm, int member, char* array, DType dtype, const Owners& owners,
                                   int64_t slot_elements, const NcclPatience& patience);
  // Room for `bytes`; smaller room is given back.
  absl::Status MakeRoom(int64_t bytes);
  enum class Copy { kIntoSlot, kOutOfSlot };
  absl::Status CopyRanges(Copy copy, char* array, const std::vector<ElementRange>& ranges, char* slot, int64_t element_bytes);

  const NcclApi& api_;
  DeviceMemory& memory_;
  void* const stream_;
  const NcclCosts costs_;
  char* room_ = nullptr;
  int64_t room_bytes_ = 0;
};

ncclDataType_t NcclTypeOf(DType dtype);

}  // namespace motley::engine
