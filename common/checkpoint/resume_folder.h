// The folder from which ranks go on, of a checkpoint whose files lie on the disks of several nodes: files of this node as hard
// links, of the others only the blocks that its ranks read; where the rest would be is a hole. CheckpointReader verifies what it
// reads, so a hole that is read after all is damage and not zeros. docs/inside/local-storage.md
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/checkpoint/checkpoint.h"

namespace motley {

// Of a file that is open, those of these blocks that are not what the manifest says, or cannot be read. `path` is for errors.
// CANCELLED: `stopped`, which is looked at before each block.
absl::StatusOr<std::vector<int64_t>> AlteredBlocks(const FileDescriptor& opened, const std::string& path,
                                                   const CheckpointFile& file, const std::vector<int64_t>& blocks,
                                                   const std::function<bool()>& stopped);
std::vector<int64_t> AllBlocks(const CheckpointFile& file);
int64_t BytesOfBlock(const CheckpointFile& file, int64_t block);

// One file that this node lacks, while its blocks come.
class ResumeFile {
 public:
  // Makes it, as long as the manifest says and empty. What has the name goes.
  static absl::StatusOr<ResumeFile> Make(const std::string& folder, const CheckpointFile& file);
  // The one that is there, if it is as long as the manifest says; else as Make.
  static absl::StatusOr<ResumeFile> GoOn(const std::string& folder, const CheckpointFile& file);
  // Of these blocks, those that it lacks, as AlteredBlocks has it.
  absl::StatusOr<std::vector<int64_t>> Lacking(const std::vector<int64_t>& blocks, const std::function<bool()>& stopped) const {
    return AlteredBlocks(opened_, path_, file_, blocks, stopped);
  }
  // DATA_LOSS: it is not what the manifest says of the block, or there is no such block; nothing is written.
  absl::Status Put(int64_t block, std::string_view bytes);
  // Syncs.
  absl::Status Finish();

 private:
  ResumeFile(CheckpointFile file, std::string path, FileDescriptor opened)
      : file_(std::move(file)), path_(std::move(path)), opened_(std::move(opened)) {}
  CheckpointFile file_;
  std::string path_;
  FileDescriptor opened_;
};

// Makes `folder` anew, whatever is there, and what it lies in, with this manifest. Each of the manifest's files that one of
// `own_folders` has with its size becomes a link to it, the first one's. Returns the indices of the others, of which nothing is
// made. A folder of `own_folders` that is not there has nothing. Fault::kStorage: it cannot be written now.
absl::StatusOr<std::vector<size_t>> BeginResumeFolder(const std::string& folder, const CheckpointManifest& manifest,
                                                      const std::string& text, const std::vector<std::string>& own_folders);

}  // namespace motley
