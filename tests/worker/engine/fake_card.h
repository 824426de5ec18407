// A card that is not there: tensors on the host, lanes on fake streams, copies that come late. Everything but the kernels is what
// a card gets.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "tests/worker/engine/fake_handles.h"
#include "tests/worker/engine/issued_memory.h"
#include "tests/worker/engine/lanes/fake_device_memory.h"
#include "tests/worker/engine/lanes/fake_streams.h"
#include "worker/engine/device/host_backend.h"

namespace motley::engine {

class FakeCard : public HostBackend {
 public:
  // `nccl`: null: transfers go through the host. `issued`: where the card's bytes count; null: in the process's.
  explicit FakeCard(unsigned seed, const NcclApi* nccl = nullptr, IssuedMemoryPtr issued = nullptr)
      : HostBackend(issued != nullptr ? MemoryAccountPtr(issued) : ProcessMemory()),
        nccl_(nccl),
        issued_(std::move(issued)),
        device_(seed) {
    for (size_t lane = 0; lane < streams_.size(); ++lane) {
      std::unique_ptr<DeviceStream>& stream = streams_[lane];
      stream = device_.MakeStream(lane == static_cast<size_t>(Lane::kCompute) ? kLaunchesOfAUnit : 1);
      static_cast<void>(stream->Launch([this] {
        at::set_num_threads(1);  // of the stream's thread
        CountIn(host_account());
        handles_.Watch();
        return absl::OkStatus();
      }));
    }
    for (auto& stream : streams_) {
      while (!stream->Idle()) std::this_thread::yield();
    }
    for (size_t lane = 0; issued_ != nullptr && lane < streams_.size(); ++lane) {
      streams_[lane] = std::make_unique<CountedStream>(*issued_, lane, std::move(streams_[lane]));
    }
    memory_.set_busy(
        [this] { return std::any_of(streams_.begin(), streams_.end(), [](const auto& stream) { return !stream->Idle(); }); });
  }

  DeviceStream* StreamOf(Lane lane) override { return streams_[static_cast<size_t>(lane)].get(); }
  DeviceMemory* memory() override { return &memory_; }
  const NcclApi* nccl() override { return nccl_; }
  const KernelLauncher* kernels() const override { return kernels_; }
  // Over host memory: open_fake_kernels.h. Must outlive it.
  void set_kernels(const KernelLauncher* kernels) { kernels_ = kernels; }
  // A step begins with it.
  void ResetPeak() override {
    HostBackend::ResetPeak();
    if (issued_ != nullptr) issued_->BeginSteps();
    handles_.BeginSteps();
  }
  int64_t PeakBytes() const override { return issued_ != nullptr ? issued_->PeakAsIssued() : HostBackend::PeakBytes(); }
  std::optional<MemoryByPurpose> MostByPurpose() const override { return std::nullopt; }
  void UsedOn(const at::Tensor& tensor, Lane lane) override {
    if (issued_ != nullptr) issued_->Use(tensor.storage().data(), static_cast<size_t>(lane));
  }
  int64_t BytesBesideAllocator() const override { return beside_allocator_bytes_; }
  void set_beside_allocator_bytes(int64_t bytes) { beside_allocator_bytes_ = bytes; }

  const FakeDeviceMemory& bytes() const { return memory_; }
  const FakeHandles& handles() const { return handles_; }

 private:
  static constexpr int kLaunchesOfAUnit = 60;  // a layer's backward

  const NcclApi* const nccl_;
  const KernelLauncher* kernels_ = nullptr;
  int64_t beside_allocator_bytes_ = 0;
  const IssuedMemoryPtr issued_;
  FakeDeviceMemory memory_;
  FakeHandles handles_;
  FakeStreamDevice device_;
  std::array<std::unique_ptr<DeviceStream>, kNumLanes> streams_;  // by Lane; after what their threads use
};

}  // namespace motley::engine
