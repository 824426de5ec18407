// Whether the host still has what a plan keeps in its memory, before the plan's ranks start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/session/assignment.h"
#include "worker/daemon/host_memory.h"
#include "worker/daemon/nvidia_cards.h"

namespace motley::worker {

// Those that hold most of the host's memory, the first one most. `root`: as of ReadHostMemory.
std::vector<CardProcess> LargestProcesses(const std::string& root = "");

// What this node's ranks keep there together.
int64_t PlannedHostBytes(const std::vector<RankAssignment>& ranks);

// RESOURCE_EXHAUSTED: less is available than `ranks`, all of one node, keep; names the node, the ranks, both numbers, and who
// holds it. OK also where nothing is known of the host.
absl::Status CheckHostRoom(const std::vector<RankAssignment>& ranks, const HostMemory& host,
                           const std::vector<CardProcess>& holders);

// What plans may keep there after that.
int64_t StillOffered(int64_t offered_bytes, const HostMemory& host);

}  // namespace motley::worker
