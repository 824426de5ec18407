// Checkpoints of a job whose rank 0 is on the node "big" and rank 1 on "small", each file on its own node's disk.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/local_checkpoint.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {

inline constexpr char kOneMark[] = "0123456789abcdef0123456789abcdef", kOtherMark[] = "fedcba9876543210fedcba9876543210";
inline constexpr const char* kTwoNodes[] = {"big", "small"};
inline constexpr double kShareOfBig = 0.6;

inline CheckpointFence LocalEpoch(int64_t epoch = 3, const JobUid& uid = kOneUid) { return NewestEpoch(epoch, uid); }

// Several blocks in each of the two files.
inline ModelShape LargerModel() {
  ModelShape model = TinyModel(true);
  model.vocab_size = 110'000;
  return model;
}

// The folders of the two nodes, and what they save.
struct TwoDisks {
  TempFolder big, small;

  const TempFolder& Of(int rank) const { return rank == 0 ? big : small; }
  std::string Temporary(int rank, int64_t step, const CheckpointFence& fence) const {
    return Of(rank) / TemporaryCheckpointFolderName(step, fence.epoch, fence.owner.uid);
  }
  // Both ranks write their files.
  absl::StatusOr<CheckpointManifest> Write(int64_t step, const CheckpointFence& fence = LocalEpoch(),
                                           const ModelShape& model = TinyModel(true)) const {
    CheckpointManifest manifest = TestManifest(step, model, fence);
    manifest.format_version = kLocalCheckpointFormat;
    for (int rank = 0; rank < 2; ++rank) {
      auto file = WriteTestFile(Temporary(rank, step, fence), rank, model, kShareOfBig);
      if (!file.ok()) return file.status();
      file->node = kTwoNodes[rank];
      manifest.files.push_back(*std::move(file));
    }
    return manifest;
  }
  // And both nodes publish.
  absl::StatusOr<CheckpointManifest> Save(int64_t step, const CheckpointFence& fence = LocalEpoch(),
                                          const ModelShape& model = TinyModel(true)) const {
    absl::StatusOr<CheckpointManifest> manifest = Write(step, fence, model);
    for (int rank = 0; rank < 2 && manifest.ok(); ++rank) {
      const auto published = PublishLocalCheckpoint(Of(rank).path(), *manifest, ManifestToJson(*manifest), kOneMark, fence);
      if (!published.ok()) return published.status();
    }
    return manifest;
  }
};

}  // namespace motley
