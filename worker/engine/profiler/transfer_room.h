// Bytes that a profiler's transfers carry: on the device, where it has a memory of its own, else on the host.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/engine/device/device_backend.h"

namespace motley::engine {

// Used on one lane, whose stream does the copies. One thread.
class TransferRoom {
 public:
  // All zeros: sums of them stay finite. RESOURCE_EXHAUSTED: the device is full.
  static absl::StatusOr<std::unique_ptr<TransferRoom>> Make(DeviceBackend& backend, Lane lane, int64_t bytes);
  ~TransferRoom();
  TransferRoom(const TransferRoom&) = delete;
  TransferRoom& operator=(const TransferRoom&) = delete;

  void* data() { return device_ != nullptr ? device_ : host_.data(); }
  // A few bytes at the beginning; done on return, with what the lane was given before.
  absl::Status Write(const void* from, int64_t bytes);
  absl::Status Read(void* to, int64_t bytes);

 private:
  TransferRoom(DeviceMemory* memory, void* stream) : memory_(memory), stream_(stream) {}
  absl::Status AllocateOnDevice(int64_t bytes);
  absl::Status Copy(void* to, const void* from, int64_t bytes);

  DeviceMemory* const memory_;  // null: the host's
  void* const stream_;
  std::vector<char> host_;
  void *device_ = nullptr, *staging_ = nullptr;  // the latter pinned, of kStagingBytes at most
};

}  // namespace motley::engine
