// What one node's disk has of the checkpoints of a job that keeps them on its nodes' disks: the manifest lies on every node of
// the generation that saved, a rank's file on the rank's node alone. docs/inside/local-storage.md
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace motley {

struct HeldFile {
  std::string name;
  int64_t bytes = 0;
  bool here = false;      // with that size; nobody has read it
  std::string node = {};  // whose rank wrote it, as the manifest says; empty: of one that is not published
  friend bool operator==(const HeldFile&, const HeldFile&) = default;
};
// By a manifest that lies here. What of it says whether a job can go on from it stands here, too.
struct HeldCheckpoint {
  std::string name;             // of its folder: "step-00000040-gen-3"
  std::string manifest_digest;  // SHA-256 (hex), as it stands in the manifest
  std::string mark;             // what lies beside the manifest (mark_file.h); empty: nothing
  Epoch epoch;
  int64_t step = 0;
  std::string model;  // HuggingFace's config.json
  std::string dtype, data_digest;
  int64_t seed = 0;
  std::vector<HeldFile> files;  // all of the manifest's, in its order
  friend bool operator==(const HeldCheckpoint&, const HeldCheckpoint&) = default;
};
// Files of a save that this node did not give its published name: its rank was killed in between.
struct UnpublishedFiles {
  Epoch epoch;
  int64_t step = 0;
  std::vector<HeldFile> files;  // all here; one may be cut off
  friend bool operator==(const UnpublishedFiles&, const UnpublishedFiles&) = default;
};
struct HeldCheckpoints {
  std::vector<HeldCheckpoint> checkpoints;  // the newest first, at most kMostHeldCheckpoints
  std::vector<UnpublishedFiles> unpublished;
  friend bool operator==(const HeldCheckpoints&, const HeldCheckpoints&) = default;
};
inline constexpr size_t kMostHeldCheckpoints = 64;

// Beneath a job's own folder on this node. Only those whose manifest reads, is of the job's uid and is local
// (CheckpointManifest::is_local). A folder that is not there holds nothing. Fault::kStorage: it cannot be read now.
absl::StatusOr<HeldCheckpoints> LookForHeldCheckpoints(const std::string& root, const JobUid& uid);

}  // namespace motley
