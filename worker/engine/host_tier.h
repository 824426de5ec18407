// The host's memory as a rank's second tier: one block, made before the state is. First come slots for inputs of units that wait
// between forward and backward, then an area for each unit of whose state something waits between its uses. Beside the device's
// account: it has bytes of its own. Private to the engine; knows no torch.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/session/assignment.h"
#include "worker/engine/model/host_areas.h"
#include "worker/engine/transport/device_memory.h"

namespace motley::engine {

// Of the block that the assignment's training program needs.
int64_t HostBytesFor(const RankAssignment& assignment, Precision precision);

// Of one thread, but for InputOf and areas.
class HostTier {
 public:
  // For what the training program offloads; nothing: an empty block. Where `memory` (else null) is a device's, the device copies
  // from and to it beside its other work (pinned). It must outlive the tier. RESOURCE_EXHAUSTED names the rank: more bytes than
  // are planned, or the host has not so many (Fault::kMemory, with how many went).
  static absl::StatusOr<std::unique_ptr<HostTier>> Make(const RankAssignment& assignment, Precision precision,
                                                        DeviceMemory* memory);
  ~HostTier();
  HostTier(const HostTier&) = delete;
  HostTier& operator=(const HostTier&) = delete;

  // Held from before the state is made to the last step.
  int64_t bytes() const { return bytes_; }
  HostMemoryByPurpose by_purpose() const;
  // Where the input of a unit and microbatch waits that the program offloads. Thread-safe.
  char* InputOf(int32_t unit, int32_t microbatch) const { return block_ + inputs_.at({unit, microbatch}); }
  // Where units' state waits.
  const HostAreas& areas() const { return areas_; }

 private:
  HostTier(DeviceMemory* memory, HostAreas areas) : memory_(memory), areas_(std::move(areas)) {}

  DeviceMemory* const memory_;
  char* block_ = nullptr;
  int64_t bytes_ = 0;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int64_t> inputs_;  // by unit and microbatch: where they begin in the block
  HostAreas areas_;
};

}  // namespace motley::engine
