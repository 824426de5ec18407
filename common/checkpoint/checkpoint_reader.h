// Reads elements of a checkpoint, and verifies every byte before it hands it out. What was altered after somebody else checked
// is found by whoever would use it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/files.h"
#include "common/checkpoint/checkpoint.h"
#include "common/weights/weight_source.h"

namespace motley {

// Not thread-safe. Keeps one block, and one open file.
class CheckpointReader : public WeightSource {
 public:
  // Errors: those of ReadManifest and VerifyStructure; a folder or file that is not there is Fault::kStorage here: where it
  // was found a moment ago it is not seen, which proves nothing about it.
  static absl::StatusOr<CheckpointReader> Open(const std::string& folder);

  const CheckpointManifest& manifest() const { return manifest_; }
  // Reads elements [begin, end) of a unit's state, from whatever pieces hold them, into `out`. DATA_LOSS: a file does not hold
  // what was written; carries the folder (DamagedCheckpointOf). Fault::kStorage: it cannot be read now, or the folder was
  // replaced by another checkpoint meanwhile.
  absl::Status Read(int unit, StateTensor tensor, int64_t begin, int64_t end, void* out);
  absl::Status Read(int unit, int64_t begin, int64_t end, void* out) override {
    return Read(unit, StateTensor::kParameter, begin, end, out);
  }

 private:
  CheckpointReader(std::string folder, CheckpointManifest manifest)
      : folder_(std::move(folder)), manifest_(std::move(manifest)), blocks_(manifest_.files.size()) {}
  // The same of the arrays as they lie in the files.
  absl::Status ReadStored(int unit, StateTensor tensor, int64_t begin, int64_t end, void* out);
  absl::Status ReadBytes(size_t file, int64_t offset, char* out, int64_t bytes);
  // Makes block_ block `index` of the file.
  absl::Status LoadBlock(size_t file, int64_t index);
  absl::Status OpenFile(size_t file);
  // Format 1 has one digest for each file: read whole once, which gives the digests of its blocks.
  absl::Status DigestWholeFile(size_t file);
  absl::Status Damaged(size_t file, const std::string& what) const;

  std::string folder_;
  CheckpointManifest manifest_;
  std::vector<std::vector<std::string>> blocks_;  // by file; empty until it is first read
  size_t open_ = 0;                               // the file of fd_ and block_
  FileDescriptor fd_;
  int64_t block_index_ = -1;
  std::string block_;
};

}  // namespace motley
