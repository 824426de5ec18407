// Finds a file of a local checkpoint on this node's disk, whoever asks for it: by names that are judged here, never by a path.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/base/ids.h"

namespace motley::worker {

// More than any manifest has (a checkpoint of 10 TB).
inline constexpr int64_t kMostManifestBytes = int64_t{256} << 20;

struct LocalCheckpoint {
  JobId job;
  JobUid job_uid;
  std::string name;  // "step-00000040-gen-3"
};
// INVALID_ARGUMENT: an id, a uid or a name that none has. They become parts of paths.
absl::Status CheckNames(const LocalCheckpoint& checkpoint);
// The name of the folder that it has until it is published.
std::string UnpublishedName(const LocalCheckpoint& checkpoint);
// "rank-0.bin" and the like. INVALID_ARGUMENT.
absl::Status CheckRankFile(const std::string& name);

// "base-0123456789abcdef/base.json" and what lies in that folder's `files` (common/weights/base_model.h): of the checkpoints of a
// job that began from somebody's weights. INVALID_ARGUMENT.
absl::Status CheckBaseFile(const std::string& name);
// Of a file's name: it is given as one block, however long. The manifest, and a base's files, whose sizes no manifest has.
bool IsOneBlock(const std::string& file);

// A file of it beneath [files] local, for reading: in its published folder, else in the one that was not given its name; empty:
// its manifest; a base's file: beside those folders. No link is followed. INVALID_ARGUMENT as above; NOT_FOUND: there is none, or
// what is there is no file of its own; Fault::kStorage: it cannot be read now. No error names a folder of this machine.
absl::StatusOr<FileDescriptor> OpenCheckpointFile(const std::string& local, const LocalCheckpoint& checkpoint,
                                                  const std::string& file);

}  // namespace motley::worker
