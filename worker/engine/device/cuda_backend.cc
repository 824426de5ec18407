#include "worker/engine/device/cuda_backend.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/device/transport_choice.h"
#include "worker/engine/device/cuda_libraries.h"
#include "worker/engine/device/cuda_memory.h"
#include "worker/engine/device/cuda_status.h"
#include "worker/engine/device/cuda_streams.h"
#include "worker/engine/kernels/open_kernels.h"
#include "worker/engine/nccl/nccl_library.h"

namespace motley::engine {
namespace {

constexpr c10::DeviceIndex kOnlyCard = 0;
constexpr size_t kAllBlocks = 0;  // of the allocator's counts: small and large ones together

// A kernel of ATen's own: whether this build has kernels for the card is known when one runs.
absl::Status TryKernel() {
  try {
    const at::Tensor two = at::ones({1}, at::TensorOptions().device(c10::Device(c10::kCUDA, kOnlyCard))).add_(1).cpu();
    if (two.item<float>() == 2) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("the card computes 1 + 1 = ", two.item<float>()));
  } catch (const c10::Error& error) {
    MOTLEY_RETURN_IF_ERROR(CudaStatus("a first kernel", cudaGetLastError()));
    return absl::FailedPreconditionError(absl::StrCat("a first kernel: ", error.what_without_backtrace()));
  }
}

class CudaBackend : public DeviceBackend {
 public:
  CudaBackend(int64_t card_bytes, int64_t used_by_others_bytes, int multiprocessors, absl::StatusOr<NcclLibrary> nccl,
              std::unique_ptr<NcclLogFile> nccl_log, absl::StatusOr<std::unique_ptr<KernelLauncher>> kernels)
      : card_bytes_(card_bytes),
        used_by_others_bytes_(used_by_others_bytes),
        multiprocessors_(multiprocessors),
        nccl_(std::move(nccl)),
        nccl_log_(std::move(nccl_log)),
        kernels_(std::move(kernels)) {
    for (size_t lane = 0; lane < kNumLanes; ++lane) {
      // Transfers go first: what they bring is waited for, and they take little of the card.
      lanes_[lane] = streams_.Make(/*high_priority=*/lane != static_cast<size_t>(Lane::kCompute));
    }
    // Before the exception, which frees what the failed instruction held. The allocator keeps its observers for ever.
    c10::cuda::CUDACachingAllocator::attachOutOfMemoryObserver(
        [refused = refused_, others = used_by_others_bytes_](int64_t, size_t asked, size_t, size_t) {
          refused->held_bytes = Stats().allocated_bytes[kAllBlocks].current + BesideAllocator(others);
          refused->asked_bytes = static_cast<int64_t>(asked);
        });
  }

  c10::Device tensors() const override { return {c10::kCUDA, kOnlyCard}; }
  DeviceStream* StreamOf(Lane lane) override { return lanes_[static_cast<size_t>(lane)].get(); }
  void Synchronize() override {
    const absl::Status status = CudaStatus("waiting for the card", cudaDeviceSynchronize());
    TORCH_CHECK(status.ok(), std::string(status.message()));
  }
  DeviceMemory* memory() override { return &memory_; }
  const NcclApi* nccl() override { return nccl_.ok() ? &nccl_->api : nullptr; }
  const KernelLauncher* kernels() const override { return kernels_.ok() ? kernels_->get() : nullptr; }
  NcclLogFile* nccl_log() override { return nccl_log_.get(); }
  int multiprocessors() const override { return multiprocessors_; }
  absl::Duration soak() const override { return absl::Seconds(10); }
  std::string note() const override {
    const std::string transfers =
        nccl_.ok() ? absl::StrCat("NCCL ", NcclVersionText(nccl_->version), " from ", nccl_->path)
                   : absl::StrCat("without NCCL, other ranks are reached through the host's memory: ", nccl_.status().message());
    if (!kernels_.ok()) return absl::StrCat(transfers, "; without kernels of our own: ", kernels_.status().message());
    return absl::StrCat(transfers, "; kernels ", (*kernels_)->digest().substr(0, 12), " for ", (*kernels_)->image());
  }
  void UsedOn(const at::Tensor& tensor, Lane lane) override {
    const auto stream = static_cast<cudaStream_t>(StreamOf(lane)->handle());
    c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(),
                                                  c10::cuda::getStreamFromExternal(stream, kOnlyCard));
  }

  void SetMemoryCap(int64_t bytes, std::string_view) override {
    cap_bytes_ = bytes;
    const double share = bytes > 0 ? static_cast<double>(bytes) / static_cast<double>(card_bytes_) : 1;
    c10::cuda::CUDACachingAllocator::setMemoryFraction(std::min(1.0, share), kOnlyCard);
  }
  int64_t MemoryCapBytes() const override { return cap_bytes_; }
  int64_t CurrentBytes() const override { return Stats().allocated_bytes[kAllBlocks].current; }
  // What another stream has yet to use is not allocated any more, and nobody else's.
  int64_t PeakBytes() const override { return Stats().active_bytes[kAllBlocks].peak; }
  void ResetPeak() override { c10::cuda::CUDACachingAllocator::resetPeakStats(kOnlyCard); }
  int64_t BytesBesideAllocator() const override { return BesideAllocator(used_by_others_bytes_); }
  MemoryRefusal LastRefusal() const override { return {refused_->held_bytes, refused_->asked_bytes}; }
  int64_t AllocationRetries() const override { return Stats().num_alloc_retries; }

 private:
  struct Refused {
    std::atomic<int64_t> held_bytes{0}, asked_bytes{0};
  };
  static int64_t BesideAllocator(int64_t used_by_others_bytes) {
    size_t free = 0, total = 0;
    if (!CudaStatus("asking for the card's memory", cudaMemGetInfo(&free, &total)).ok()) return 0;
    const int64_t reserved = Stats().reserved_bytes[kAllBlocks].current;
    return std::max<int64_t>(0, static_cast<int64_t>(total - free) - reserved - used_by_others_bytes);
  }
  static c10::CachingDeviceAllocator::DeviceStats Stats() { return c10::cuda::CUDACachingAllocator::getDeviceStats(kOnlyCard); }

  const int64_t card_bytes_;
  const int64_t used_by_others_bytes_;  // as the worker saw it last; CUDA only knows the sum
  const int multiprocessors_;
  const absl::StatusOr<NcclLibrary> nccl_;
  const std::unique_ptr<NcclLogFile> nccl_log_;
  const absl::StatusOr<std::unique_ptr<KernelLauncher>> kernels_;
  const std::shared_ptr<Refused> refused_ = std::make_shared<Refused>();
  int64_t cap_bytes_ = 0;
  CudaMemory memory_;
  CudaStreams streams_;
  std::array<std::unique_ptr<DeviceStream>, kNumLanes> lanes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceBackend>> OpenCuda(const DeviceDescription& device, const std::string& data_address) {
  // Before the runtime's first look at the cards. An index may be another card's after the next boot.
  if (!device.card.uuid.empty()) setenv("CUDA_VISIBLE_DEVICES", device.card.uuid.c_str(), /*overwrite=*/1);
  // With fewer queues than streams, a lane's work would wait behind another lane's, which may wait for a peer.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/1);
  MOTLEY_RETURN_IF_ERROR(CheckDriver());
  int cards = 0;
  const cudaError_t looked = cudaGetDeviceCount(&cards);
  if (looked == cudaErrorNoDevice)
    cudaGetLastError();  // or the next launch would be blamed for it
  else
    MOTLEY_RETURN_IF_ERROR(CudaStatus("looking for the card", looked));
  if (cards == 0)
    return absl::FailedPreconditionError(absl::StrCat("card ", device.card.uuid, " is not visible to this process"));
  PrepareNcclEnvironment(data_address);
  std::unique_ptr<NcclLogFile> nccl_log = NcclLogFile::Open();
  // First: libtorch_cuda asks for a library of NCCL's name itself.
  absl::StatusOr<NcclLibrary> nccl = OpenTorchsNccl();
  PrepareTorchCuda();
  MOTLEY_RETURN_IF_ERROR(OpenTorchCuda());
  MOTLEY_RETURN_IF_ERROR(TryKernel());
  int generation = 0;
  MOTLEY_RETURN_IF_ERROR(CudaStatus("asking for the card's compute capability",
                                    cudaDeviceGetAttribute(&generation, cudaDevAttrComputeCapabilityMajor, kOnlyCard)));
  if (generation < kOldestCardForNccl) nccl = absl::FailedPreconditionError("it has no kernels for a card this old");
  size_t free = 0, total = 0;
  MOTLEY_RETURN_IF_ERROR(CudaStatus("asking for the card's memory", cudaMemGetInfo(&free, &total)));
  int multiprocessors = 0;
  MOTLEY_RETURN_IF_ERROR(CudaStatus("asking for the card's multiprocessors",
                                    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, kOnlyCard)));
  absl::StatusOr<std::unique_ptr<KernelLauncher>> kernels =
      OpenKernels({.ordinal = kOnlyCard, .stream = [] { return c10::cuda::getCurrentCUDAStream(kOnlyCard).stream(); }});
  return std::make_unique<CudaBackend>(static_cast<int64_t>(total), device.card.used_by_others_bytes, multiprocessors,
                                       std::move(nccl), std::move(nccl_log), std::move(kernels));
}

}  // namespace motley::engine
