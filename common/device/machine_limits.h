// What a machine or a container allows its processes, as far as transports between cards depend on it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace motley {

struct MachineLimits {
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  int64_t shared_memory_bytes = kUnlimited;  // size of /dev/shm; 0: there is none
  int64_t locked_memory_bytes = kUnlimited;  // RLIMIT_MEMLOCK of this process: children inherit it
  bool has_verbs = false;                    // a device of InfiniBand or RoCE
};

// `shm`, `verbs`: folders, of tests.
MachineLimits MachineLimitsHere(const std::string& shm = "/dev/shm", const std::string& verbs = "/sys/class/infiniband");

// What NCCL mostly fails of here, with the remedy; empty: nothing. Containers have 64 MB of shared memory where nobody says how
// much, and NCCL takes up to 10 MB of it for each connection between two cards.
std::string SharedMemoryTooSmall(const MachineLimits& limits);
// RoCE and InfiniBand register their buffers, which counts as locking them. Only where there are such devices.
std::string LockedMemoryTooSmall(const MachineLimits& limits);

}  // namespace motley
