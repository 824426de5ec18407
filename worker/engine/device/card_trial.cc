#include "worker/engine/device/card_trial.h"

#include <cuda_runtime_api.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "worker/engine/device/cuda_status.h"
#include "worker/engine/nccl/nccl_causes.h"
#include "worker/engine/transport/nccl_trial.h"

namespace motley::engine {
namespace {

// The worker waits 30 s for the whole program, of which loading libtorch from a cold disk takes two.
constexpr absl::Duration kEachWait = absl::Seconds(15), kAll = absl::Seconds(20);
// A context, NCCL's kernels and its buffers.
constexpr size_t kRoomForATrial = size_t{1} << 30;

class PlainCudaMemory : public DeviceMemory {
 public:
  absl::StatusOr<void*> Allocate(int64_t bytes, void*) override {
    void* room = nullptr;
    MOTLEY_RETURN_IF_ERROR(CudaStatus("memory of the card", cudaMalloc(&room, static_cast<size_t>(bytes))));
    return room;
  }
  void Free(void* room) override { cudaFree(room); }
  absl::StatusOr<void*> AllocateHost(int64_t) override { return absl::UnimplementedError("no trial copies"); }
  void FreeHost(void*) override {}
  absl::Status CopyAsync(void*, const void*, int64_t, void*) override { return absl::UnimplementedError("no trial copies"); }
  absl::StatusOr<bool> IsDone(void* stream) override {
    const cudaError_t error = cudaStreamQuery(static_cast<cudaStream_t>(stream));
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    MOTLEY_RETURN_IF_ERROR(CudaStatus("waiting for a first sum", error));
    return true;
  }
};

// Makes it the thread's card.
bool CanBeTried(int card) {
  int generation = 0;
  size_t free = 0, total = 0;
  return cudaSetDevice(card) == cudaSuccess &&
         cudaDeviceGetAttribute(&generation, cudaDevAttrComputeCapabilityMajor, card) == cudaSuccess &&
         generation >= kOldestCardForNccl && cudaMemGetInfo(&free, &total) == cudaSuccess && free >= kRoomForATrial;
}

absl::Status Try(const NcclLibrary& nccl) {
  int driver = 0, cards = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return absl::OkStatus();
  MOTLEY_RETURN_IF_ERROR(CheckDriver());
  const cudaError_t looked = cudaGetDeviceCount(&cards);
  if (looked == cudaErrorNoDevice) return absl::OkStatus();
  if (const absl::Status status = CudaStatus("looking for cards", looked); !status.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(status.message(), "; likely cause: ", LikelyCause(std::string(status.message()), MachineLimitsHere())));
  }
  int card = 0;
  while (card < cards && !CanBeTried(card)) ++card;
  cudaGetLastError();  // of those that cannot
  if (card == cards) return absl::OkStatus();
  cudaStream_t stream = nullptr;
  MOTLEY_RETURN_IF_ERROR(CudaStatus("making a stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)));
  PlainCudaMemory memory;
  absl::Status status = TryNccl(nccl, memory, stream, kEachWait);
  if (status.ok()) cudaStreamDestroy(stream);  // of one that hangs the process's end takes it away
  return status;
}

}  // namespace

absl::Status TryNcclOnACard(const NcclLibrary& nccl) {
  return EndsWithin(kAll, "NCCL's trial on a card", [nccl] { return Try(nccl); });
}

}  // namespace motley::engine
