#include "worker/engine/transport/nccl_collectives.h"

#include "common/base/status_macros.h"

namespace motley::engine {
namespace {

// Runs call(range's begin in bytes, its elements, owner) for each range of each member until one fails.
template <typename Call>
ncclResult_t ForEachRange(const Owners& owners, int64_t element_bytes, Call call) {
  for (size_t owner = 0; owner < owners.size(); ++owner) {
    for (const ElementRange& range : owners[owner]) {
      if (range.size() == 0) continue;
      const ncclResult_t result = call(range.begin * element_bytes, static_cast<size_t>(range.size()), static_cast<int>(owner));
      if (result != ncclSuccess && result != ncclInProgress) return result;
    }
  }
  return ncclSuccess;
}

}  // namespace

ncclDataType_t NcclTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ncclFloat32;
    case DType::kFloat64:
      return ncclFloat64;
    case DType::kFloat16:
      return ncclFloat16;
    case DType::kBFloat16:
      return ncclBfloat16;
  }
  return ncclFloat32;
}

NcclCollectives::~NcclCollectives() {
  if (room_ != nullptr) memory_.Free(room_);
}

absl::Status NcclCollectives::Reserve(DType dtype, const Owners& owners) {
  const CollectivePlan plan = PlanCollective(owners, SizeOfBytes(dtype), costs_);
  if (plan.way != CollectiveWay::kPadded) return absl::OkStatus();
  return MakeRoom(plan.slot_elements * SizeOfBytes(dtype) * static_cast<int64_t>(owners.size()));
}

absl::Status NcclCollectives::AllGather(NcclComm& comm, int member, char* array, DType dtype, const Owners& owners,
                                        const NcclPatience& patience) {
  const int64_t element_bytes = SizeOfBytes(dtype);
  const ncclDataType_t type = NcclTypeOf(dtype);
  const CollectivePlan plan = PlanCollective(owners, element_bytes, costs_);
  switch (plan.way) {
    case CollectiveWay::kNothing:
      return absl::OkStatus();
    case CollectiveWay::kPadded:
      return PaddedAllGather(comm, member, array, dtype, owners, plan.slot_elements, patience);
    case CollectiveWay::kEven:
      return comm.Enqueue(
          [&](ncclComm_t handle) {
            char* const first = array + plan.first * element_bytes;
            const char* const own = first + member * plan.slot_elements * element_bytes;
            return api_.ncclAllGather(own, first, static_cast<size_t>(plan.slot_elements), type, handle, stream_);
          },
          patience);
    case CollectiveWay::kGrouped:
      return comm.Enqueue(
          [&](ncclComm_t handle) {
            return ForEachRange(owners, element_bytes, [&](int64_t begin_bytes, size_t elements, int owner) {
              char* const range = array + begin_bytes;
              return api_.ncclBroadcast(range, range, elements, type, owner, handle, stream_);
            });
          },
          patience);
  }
  return absl::OkStatus();
}

absl::Status NcclCollectives::ReduceScatter(NcclComm& comm, int member, char* array, DType dtype, const Owners& owners,
                                            const NcclPatience& patience) {
  const int64_t element_bytes = SizeOfBytes(dtype);
  const ncclDataType_t type = NcclTypeOf(dtype);
  const CollectivePlan plan = PlanCollective(owners, element_bytes, costs_);
  switch (plan.way) {
    case CollectiveWay::kNothing:
      return absl::OkStatus();
    case CollectiveWay::kPadded:
      return PaddedReduceScatter(comm, member, array, dtype, owners, plan.slot_elements, patience);
    case CollectiveWay::kEven:
      return comm.Enqueue(
          [&](ncclComm_t handle) {
            char* const first = array + plan.first * element_bytes;
            char* const own = first + member * plan.slot_elements * element_bytes;
            return api_.ncclReduceScatter(first, own, static_cast<size_t>(plan.slot_elements), type, ncclSum, handle, stream_);
          },
          patience);
    case CollectiveWay::kGrouped:
      return comm.Enqueue(
          [&](ncclComm_t handle) {
            return ForEachRange(owners, element_bytes, [&](int64_t begin_bytes, size_t elements, int owner) {
              char* const range = array + begin_bytes;
              return api_.ncclReduce(range, range, elements, type, ncclSum, owner, handle, stream_);
            });
          },
          patience);
  }
  return absl::OkStatus();
}

absl::Status NcclCollectives::PaddedAllGather(NcclComm& comm, int member, char* array, DType dtype, const Owners& owners,
                                              int64_t slot_elements, const NcclPatience& patience) {
  const int64_t element_bytes = SizeOfBytes(dtype), slot_bytes = slot_elements * element_bytes;
  const int members = static_cast<int>(owners.size());
  MOTLEY_RETURN_IF_ERROR(MakeRoom(slot_bytes * members));
  char* const own = room_ + slot_bytes * member;
  MOTLEY_RETURN_IF_ERROR(CopyRanges(Copy::kIntoSlot, array, owners[member], own, element_bytes));
  MOTLEY_RETURN_IF_ERROR(comm.Enqueue(
      [&](ncclComm_t handle) {
        return api_.ncclAllGather(own, room_, static_cast<size_t>(slot_elements), NcclTypeOf(dtype), handle, stream_);
      },
      patience));
  for (int i = 0; i < members; ++i) {
    if (i == member) continue;
    MOTLEY_RETURN_IF_ERROR(CopyRanges(Copy::kOutOfSlot, array, owners[i], room_ + slot_bytes * i, element_bytes));
  }
  return absl::OkStatus();
}

// What is beyond a share in its slot is summed too, whatever it is, and read by nobody.
absl::Status NcclCollectives::PaddedReduceScatter(NcclComm& comm, int member, char* array, DType dtype, const Owners& owners,
                                                  int64_t slot_elements, const NcclPatience& patience) {
  const int64_t element_bytes = SizeOfBytes(dtype), slot_bytes = slot_elements * element_bytes;
  const int members = static_cast<int>(owners.size());
  MOTLEY_RETURN_IF_ERROR(MakeRoom(slot_bytes * members));
  for (int i = 0; i < members; ++i) {
    MOTLEY_RETURN_IF_ERROR(CopyRanges(Copy::kIntoSlot, array, owners[i], room_ + slot_bytes * i, element_bytes));
  }
  char* const own = room_ + slot_bytes * member;
  MOTLEY_RETURN_IF_ERROR(comm.Enqueue(
      [&](ncclComm_t handle) {
        return api_.ncclReduceScatter(room_, own, static_cast<size_t>(slot_elements), NcclTypeOf(dtype), ncclSum, handle,
                                      stream_);
      },
      patience));
  return CopyRanges(Copy::kOutOfSlot, array, owners[member], own, element_bytes);
}

absl::Status NcclCollectives::MakeRoom(int64_t bytes) {
  if (bytes <= room_bytes_) return absl::OkStatus();
  if (room_ != nullptr) memory_.Free(room_);
  room_ = nullptr;
  room_bytes_ = 0;
  MOTLEY_ASSIGN_OR_RETURN(void* const room, memory_.Allocate(bytes, stream_));
  room_ = static_cast<char*>(room);
  room_bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status NcclCollectives::CopyRanges(Copy copy, char* array, const std::vector<ElementRange>& ranges, char* slot,
                                         int64_t element_bytes) {
  for (const ElementRange& range : ranges) {
    const int64_t bytes = range.size() * element_bytes;
    char* const piece = array + range.begin * element_bytes;
    char* const to = copy == Copy::kIntoSlot ? slot : piece;
    MOTLEY_RETURN_IF_ERROR(memory_.CopyAsync(to, to == slot ? piece : slot, bytes, stream_));
    slot += bytes;
  }
  return absl::OkStatus();
}

}  // namespace motley::engine
