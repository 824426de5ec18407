// A checkpoint of two ranks on two nodes, each file of several blocks, as saved on their own disks.
#pragma once

#include <algorithm>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/model/parameters.h"
#include "common/program/ownership.h"
#include "tests/common/base/temp_folder.h"
#include "worker/files/job_folder.h"

namespace motley::worker {

// The first half of every unit is rank 0's, on node a; the second rank 1's, on node b.
class SavedCheckpoint {
 public:
  static constexpr int64_t kStep = 40, kEpoch = 3;
  const JobId job{"job"};
  const JobUid uid{std::string(32, 'a')};
  const std::string name = CheckpointFolderName(kStep, kEpoch);
  const std::vector<std::string> files = {"rank-0.bin", "rank-1.bin"};
  CheckpointManifest manifest;
  std::string text;
  Ownership ownership;  // that it was saved by

  explicit SavedCheckpoint(int64_t vocab_size = 1024) {
    manifest.format_version = kLocalCheckpointFormat;
    manifest.job = job.value();
    manifest.job_uid = uid;
    manifest.epoch = kEpoch;
    manifest.step = kStep;
    manifest.model = {.family = ModelFamily::kGpt2,
                      .vocab_size = vocab_size,
                      .hidden_size = 256,
                      .num_layers = 1,
                      .num_heads = 2,
                      .num_kv_heads = 2,
                      .head_dim = 128,
                      .intermediate_size = 1024,
                      .max_positions = 16,
                      .norm_eps = 1e-5,
                      .rope_theta = 10000,
                      .tie_embeddings = true};
    manifest.data_digest = "0123abcd";
    const std::vector<UnitSpec> units = ParameterLayout(manifest.model);
    for (const UnitSpec& unit : units) {
      ownership.Add({{0, 0, unit.num_elements / 2}, {1, unit.num_elements / 2, unit.num_elements}});
    }
    for (int rank = 0; rank < 2; ++rank) WriteRank(units, rank);
    text = ManifestToJson(manifest);
  }

  // As the node has them; `folder` empty: published.
  void PutOn(const std::string& local, const std::vector<std::string>& which, bool with_manifest = true,
             const std::string& folder = "") const {
    const std::filesystem::path to = std::filesystem::path(FolderOn(local, folder.empty() ? name : folder));
    std::filesystem::create_directories(to);
    for (const std::string& file : which) std::filesystem::copy_file(written_ / file, to / file);
    if (with_manifest) std::ofstream(to / kManifestName, std::ios::binary) << text;
  }
  std::string FolderOn(const std::string& local, const std::string& folder) const {
    return LocalCheckpoints(local, job, uid) + "/" + folder;
  }
  std::string temporary_name() const { return TemporaryCheckpointFolderName(kStep, kEpoch, uid); }
  std::string Bytes(const std::string& file) const { return TempFolder::Read(written_ / file); }
  static int64_t BlocksOf(const CheckpointFile& file) { return static_cast<int64_t>(file.blocks.size()); }

 private:
  void WriteRank(const std::vector<UnitSpec>& units, int rank) {
    std::deque<std::vector<float>> arrays;
    std::vector<PieceData> pieces;
    for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
      for (const OwnedRange& range : ownership.Of(unit)) {
        if (range.rank != rank) continue;
        for (int tensor = 0; tensor < kNumStateTensors; ++tensor) {
          std::vector<float>& values = arrays.emplace_back();
          for (int64_t i = range.begin; i < range.end; ++i) {
            values.push_back(static_cast<float>(3 * unit + tensor) + static_cast<float>(i) / 65536.0f);
          }
          pieces.push_back({unit, static_cast<StateTensor>(tensor), range.begin, range.end, [&values] { return values.data(); }});
        }
      }
    }
    auto file = WriteCheckpointFile(written_.path(), files[static_cast<size_t>(rank)], DType::kFloat32, pieces).value();
    file.node = rank == 0 ? "a" : "b";
    manifest.files.push_back(std::move(file));
  }

  const TempFolder written_;
};

}  // namespace motley::worker
