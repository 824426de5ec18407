#include "worker/engine/profiler/transfer_room.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "common/base/status_macros.h"

namespace motley::engine {
namespace {

constexpr int64_t kStagingBytes = 1 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<TransferRoom>> TransferRoom::Make(DeviceBackend& backend, Lane lane, int64_t bytes) {
  DeviceStream* const stream = backend.StreamOf(lane);
  auto room = std::unique_ptr<TransferRoom>(new TransferRoom(backend.memory(), stream == nullptr ? nullptr : stream->handle()));
  if (room->memory_ == nullptr) {
    room->host_.resize(static_cast<size_t>(bytes));
  } else {
    MOTLEY_RETURN_IF_ERROR(room->AllocateOnDevice(bytes));
  }
  return room;
}

TransferRoom::~TransferRoom() {
  if (device_ != nullptr) memory_->Free(device_);
  if (staging_ != nullptr) memory_->FreeHost(staging_);
}

absl::Status TransferRoom::Write(const void* from, int64_t bytes) {
  if (memory_ != nullptr) std::memcpy(staging_, from, static_cast<size_t>(bytes));
  if (memory_ != nullptr) return Copy(device_, staging_, bytes);
  std::memcpy(host_.data(), from, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status TransferRoom::Read(void* to, int64_t bytes) {
  if (memory_ != nullptr) MOTLEY_RETURN_IF_ERROR(Copy(staging_, device_, bytes));
  std::memcpy(to, memory_ != nullptr ? staging_ : host_.data(), static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status TransferRoom::AllocateOnDevice(int64_t bytes) {
  const int64_t staging = std::min(bytes, kStagingBytes);
  MOTLEY_ASSIGN_OR_RETURN(device_, memory_->Allocate(bytes, stream_));
  MOTLEY_ASSIGN_OR_RETURN(staging_, memory_->AllocateHost(staging));
  std::memset(staging_, 0, static_cast<size_t>(staging));
  for (int64_t at = 0; at < bytes; at += staging) {
    MOTLEY_RETURN_IF_ERROR(Copy(static_cast<char*>(device_) + at, staging_, std::min(staging, bytes - at)));
  }
  return absl::OkStatus();
}

absl::Status TransferRoom::Copy(void* to, const void* from, int64_t bytes) {
  MOTLEY_RETURN_IF_ERROR(memory_->CopyAsync(to, from, bytes, stream_));
  for (;;) {
    MOTLEY_ASSIGN_OR_RETURN(const bool done, memory_->IsDone(stream_));
    if (done) return absl::OkStatus();
    std::this_thread::yield();
  }
}

}  // namespace motley::engine
