// Brings an input of a job to this node's disk, from wherever its blocks come. docs/inside/inputs.md
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/beneath.h"
#include "common/base/files.h"
#include "common/session/files.h"
#include "worker/files/bring.h"

namespace motley::worker {

struct InputSource {
  using Take = std::function<absl::Status(int64_t block, std::string_view bytes)>;
  // These blocks of a file (empty: of the list, block 0), each whole to `take`, in any order.
  std::function<absl::Status(const std::string& file, const std::vector<int64_t>& blocks, const Take& take)> read;
  std::function<void(int64_t bytes, int64_t bytes_here)> progress;  // before the first block, and with each
  std::function<bool()> stopped;
  // A file of it as this node may have it elsewhere, for reading; not set: it has not. What is there of a block as the list says
  // is not asked for.
  std::function<absl::StatusOr<FileDescriptor>(const std::string& file)> own = nullptr;
};
// Beneath one of these roots, at the path; empty: nowhere.
std::function<absl::StatusOr<FileDescriptor>(const std::string& file)> OpenerOfOwn(const std::string& path,
                                                                                   const FileRoots& roots);

// Whole, and verified; what an earlier try brought is not brought again. Makes room first, by inputs that are not `kept`.
// DATA_LOSS: what comes is not of this input; CANCELLED; RESOURCE_EXHAUSTED: no room; Fault::kStorage: this node's disk; else
// what the source says.
absl::Status BringInput(const std::string& local, const std::string& id, const InputSource& source,
                        const std::set<std::string>& kept);
// A whole one of which a byte is not as its list says is not whole from then on; what is right of it stays.
absl::Status LookWhetherAltered(const std::string& local, const std::string& id, const std::function<bool()>& stopped);
// From the nodes of the command, which are reported where what they give is not as the list says; with source.verify behind
// LookWhetherAltered. From one that has it not whole (CheckpointHolder::manifest) as it comes there.
absl::Status BringInputFromNodes(const CopyCommand& command, const Bringing& bringing);

}  // namespace motley::worker
