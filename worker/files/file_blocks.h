// Blocks of a file on this node's disk, as whoever asks by their numbers gets them: in parts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/checkpoint/checkpoint.h"
#include "worker/files/checkpoint_file.h"

namespace motley::worker {

// One that is open. All its blocks have so many bytes but the last.
struct FileBlocks {
  FileDescriptor file;
  std::string name;  // in errors
  int64_t bytes = 0, block_bytes = kCheckpointBlockBytes;
  // Of one that comes here still, the SHA-256 of each block: it is here when it has that. Empty: all are.
  std::vector<std::string> coming = {};
};
// A file of a checkpoint as OpenCheckpointFile finds it, with its errors.
absl::StatusOr<FileBlocks> OpenFileBlocks(const std::string& local, const LocalCheckpoint& checkpoint, const std::string& file);
// The same of an input's file as OpenInputFile finds it, or of one that comes here; its list is one block.
absl::StatusOr<FileBlocks> OpenInputBlocks(const std::string& local, const std::string& id, const std::string& file);

// The blocks in this order, each in parts of at most 128 KiB. OUT_OF_RANGE, before the first part: it has no such block;
// CANCELLED: `give` says that nobody takes more; Fault::kStorage: it cannot be read now; RESOURCE_EXHAUSTED: a block is not here
// yet, and `wait`, which is called before each other look, says that it is not waited for longer.
absl::Status GiveBlocks(
    const FileBlocks& from, const std::vector<int64_t>& blocks, const std::function<bool(int64_t block, std::string bytes)>& give,
    const std::function<bool()>& wait = [] { return false; });

}  // namespace motley::worker
