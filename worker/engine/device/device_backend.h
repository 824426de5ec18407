// What a kind of device brings to the engine: where tensors live, what lanes run on, how its memory is counted. The engine asks
// it and never for the kind. Private to the engine.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/device/device.h"
#include "common/program/operation.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/lanes/device_stream.h"
#include "worker/engine/nccl/nccl_api.h"
#include "worker/engine/nccl/nccl_log_file.h"
#include "worker/engine/transport/device_memory.h"

namespace motley::engine {

class KernelLauncher;

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual c10::Device tensors() const = 0;

  // What a lane's work is launched on; null: the device has no streams, work is done when its call returns. Lives as long as the
  // back end.
  virtual DeviceStream* StreamOf(Lane) { return nullptr; }
  // Blocks until the device has done all that it was given: for timing and for the host's reading of tensors.
  virtual void Synchronize() {}
  // Copies between the host's memory and the device's; null: they are one.
  virtual DeviceMemory* memory() { return nullptr; }
  // What moves bytes between devices of this kind; null: nothing but the host does.
  virtual const NcclApi* nccl() { return nullptr; }
  // What units compute by where it takes their tensors; null: PyTorch's operators alone. Lives as long as the back end.
  virtual const KernelLauncher* kernels() const { return nullptr; }
  // Where its log is to be read; null: nowhere.
  virtual NcclLogFile* nccl_log() { return nullptr; }
  // How much of it works at once: transfers are kept to a part of it. 0: not known.
  virtual int multiprocessors() const { return 0; }
  // How long it must work until it is as fast as in a long run: a card's clocks fall as it gets warm and its power limit holds.
  virtual absl::Duration soak() const { return absl::ZeroDuration(); }
  // What people should know of how it was opened; empty: nothing.
  virtual std::string note() const { return ""; }

  // `tensor` was made on another lane and is used by what `lane` was given last: its memory is nobody else's before.
  virtual void UsedOn(const at::Tensor&, Lane) {}

  // ---- bytes that tensors hold ----

  // Where tensors in the host's memory count that a thread makes for the device: each of its threads counts in it.
  virtual MemoryAccountPtr host_account() const { return ProcessMemory(); }
  // Allocations beyond the cap fail with c10::OutOfMemoryError; 0 = no cap. `device`: for its text.
  virtual void SetMemoryCap(int64_t bytes, std::string_view device) = 0;
  virtual int64_t MemoryCapBytes() const = 0;
  virtual int64_t CurrentBytes() const = 0;
  virtual int64_t PeakBytes() const = 0;  // since the last ResetPeak
  // Likewise, of each purpose its own. Nothing: its allocator knows of no purposes.
  virtual std::optional<MemoryByPurpose> MostByPurpose() const { return std::nullopt; }
  // What the process holds of the device that no tensor can have: the driver's context, kernels, libraries' buffers. 0: nothing,
  // or nobody can say.
  virtual int64_t BytesBesideAllocator() const { return 0; }
  virtual void ResetPeak() = 0;
  // Of the newest allocation on the device that failed.
  virtual MemoryRefusal LastRefusal() const = 0;
  // How often the allocator found the device full and gave it back what it kept for later, which waits for the device.
  virtual int64_t AllocationRetries() const { return 0; }
};

// `data_address`: of the interface that its transports use. FAILED_PRECONDITION: the device cannot be used; says why and what
// mends it.
absl::StatusOr<std::unique_ptr<DeviceBackend>> OpenBackend(const DeviceDescription& device, const std::string& data_address);

}  // namespace motley::engine
