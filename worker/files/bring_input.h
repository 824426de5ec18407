// Brings an input of a job to this node's disk, from wherever its blocks come. docs/inside/inputs.md
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/session/files.h"
#include "worker/files/bring.h"

namespace motley::worker {

struct InputSource {
  using Take = std::function<absl::Status(int64_t block, std::string_view bytes)>;
  // These blocks of a file (empty: of the list, block 0), each whole to `take`, in any order.
  std::function<absl::Status(const std::string& file, const std::vector<int64_t>& blocks, const Take& take)> read;
  std::function<void(int64_t bytes, int64_t bytes_here)> progress;  // before the first block, and with each
  std::function<bool()> stopped;
};

// Whole, and verified; what an earlier try brought is not brought again. Makes room first, by inputs that are not `kept`.
// DATA_LOSS: what comes is not of this input; CANCELLED; RESOURCE_EXHAUSTED: no room; Fault::kStorage: this node's disk; else
// what the source says.
absl::Status BringInput(const std::string& local, const std::string& id, const InputSource& source,
                        const std::set<std::string>& kept);
// From the nodes of the command.
absl::Status BringInputFromNodes(const CopyCommand& command, const Bringing& bringing);

}  // namespace motley::worker
