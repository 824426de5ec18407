// Host memory that a device copies from and to beside its other work: mapped, touched by all cores, registered with the device's
// driver. A driver's call that makes such memory takes four times as long. Knows no driver: the CUDA back end has it, and tests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace motley::engine {

// Of one registration: drivers count its pages in 32 bits.
inline constexpr int64_t kMostPinnedAtOnce = int64_t{64} << 30;

// Thread-safe. Rooms that are not given back end with the process.
class PinnedMemory {
 public:
  struct Driver {
    std::function<absl::Status(void* begin, int64_t bytes)> pin;  // RESOURCE_EXHAUSTED: no more goes
    std::function<void(void* begin)> unpin;
  };

  explicit PinnedMemory(Driver driver, int64_t most_at_once = kMostPinnedAtOnce)
      : driver_(std::move(driver)), most_at_once_(most_at_once) {}

  // Null for 0 bytes: nothing is registered then. RESOURCE_EXHAUSTED: the host has not so many, or the driver pins no more;
  // MemoryShortageOf says how many went. Nothing stays pinned then.
  absl::StatusOr<void*> Allocate(int64_t bytes);
  void Free(void* room);

  // How many of the bytes from both addresses on one copy may take: it lies in one registration at either end.
  int64_t OfOneCopy(const void* to, const void* from, int64_t bytes) const;

 private:
  // How many of the bytes lie before the next border of registrations.
  int64_t BeforeBorder(const void* begin, int64_t bytes) const;

  const Driver driver_;
  const int64_t most_at_once_;
  mutable std::mutex mutex_;
  std::map<const char*, int64_t> rooms_;  // guarded by mutex_: bytes, by where they begin
};

}  // namespace motley::engine
