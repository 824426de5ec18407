// The host's memory as a rank's second tier: one block, made before the first step, for inputs of units that wait there between
// forward and backward. Beside the device's account: it has bytes of its own. Private to the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/session/assignment.h"
#include "worker/engine/transport/device_memory.h"

namespace motley::engine {

// Of one thread, but for InputOf.
class HostTier {
 public:
  // For what the training program offloads; nothing: an empty block. Where `memory` (else null) is a device's, the device copies
  // from and to it beside its other work (pinned). It must outlive the tier. RESOURCE_EXHAUSTED names the rank: more bytes than
  // are planned, or the host has not so many.
  static absl::StatusOr<std::unique_ptr<HostTier>> Make(const RankAssignment& assignment, Precision precision,
                                                        DeviceMemory* memory);
  ~HostTier();
  HostTier(const HostTier&) = delete;
  HostTier& operator=(const HostTier&) = delete;

  // Held from the first step to the last.
  int64_t bytes() const { return bytes_; }
  // Where the input of a unit and microbatch waits that the program offloads. Thread-safe.
  char* InputOf(int32_t unit, int32_t microbatch) const { return block_ + inputs_.at({unit, microbatch}); }

 private:
  explicit HostTier(DeviceMemory* memory) : memory_(memory) {}

  DeviceMemory* const memory_;
  char* block_ = nullptr;
  int64_t bytes_ = 0;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int64_t> inputs_;  // by unit and microbatch: where they begin in the block
};

}  // namespace motley::engine
