// What of the host's memory a worker can offer to plans that keep a part of a rank's state or activations there (offload).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "worker/daemon/config.h"

namespace motley::worker {

// 0: not known.
struct HostMemory {
  int64_t total_bytes = 0;      // what the machine has and the control groups of this process allow
  int64_t available_bytes = 0;  // of it, what nobody needs now
};

// From /proc/meminfo and the memory limits of this process's control groups, of version 2 or 1. `root`: a folder in the place of
// "/", of tests.
HostMemory ReadHostMemory(const std::string& root = "");

// What a node with cards offers where nobody says otherwise: a part of what is available, in coarse steps, so that nodes which
// are alike say the same, today and tomorrow.
int64_t OfferedByDefault(const HostMemory& host);

// FAILED_PRECONDITION: the file offers more than the machine has. `bytes`: after memory scale.
absl::Status CheckHostMemory(int64_t bytes, const HostMemory& host);

}  // namespace motley::worker
