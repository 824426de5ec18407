// motley-worker --probe: this node as a cluster file describes it (docs/use/clusters.md), for plans without a cluster.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/daemon/nvidia_cards.h"

namespace motley::worker {

// What the machine says of itself besides its cards.
struct HostFacts {
  std::string name;
  std::string cpu;  // "AMD EPYC 7763 64-Core Processor"; empty: not known
  int cores = 0;
  int64_t memory_bytes = 0;  // 0: not known
};
HostFacts ReadHostFacts(const std::string& name);

// A [[node]], with a [[card]] to be filled in for every model that the device table does not know. NOT_FOUND: there are no cards;
// the message says what the node has instead.
absl::StatusOr<std::string> ProbeText(const HostFacts& host, const NvidiaCards& found);

}  // namespace motley::worker
