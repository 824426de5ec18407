// Checkpoints of a tiny model for tests: every element's value tells its unit, array and place.
#pragma once

#include <deque>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "common/model/parameters.h"

namespace motley {

inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

inline ModelShape TinyModel(bool tied) {
  return {.family = ModelFamily::kGpt2,
          .vocab_size = 256,
          .hidden_size = 8,
          .num_layers = 2,
          .num_heads = 2,
          .num_kv_heads = 2,
          .head_dim = 4,
          .intermediate_size = 32,
          .max_positions = 16,
          .norm_eps = 1e-5,
          .rope_theta = 10000,
          .tie_embeddings = tied};
}

inline ModelShape TinyLlama() {
  return {.family = ModelFamily::kLlama,
          .vocab_size = 256,
          .hidden_size = 8,
          .num_layers = 2,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 2,
          .intermediate_size = 16,
          .max_positions = 16,
          .norm_eps = 1e-5,
          .rope_theta = 500000,
          .tie_embeddings = false};
}

inline ModelShape TinyQwen2() {
  ModelShape shape = TinyLlama();
  shape.family = ModelFamily::kQwen2;
  return shape;
}

inline float ExpectedValue(int unit, StateTensor tensor, int64_t element) {
  return static_cast<float>(unit * 3 + static_cast<int>(tensor)) + static_cast<float>(element) / 65536.0f;
}

// Of an epoch that nobody contests; without a uid, as of a coordinator from before uids.
inline CheckpointFence NewestEpoch(int64_t epoch = 3, const JobUid& uid = JobUid()) {
  return {.owner = {JobId("job-1"), uid}, .epoch = epoch, .confirm = [](const std::string&) { return absl::OkStatus(); }};
}
// Two jobs of one id.
inline const JobUid kOneUid(std::string(32, '1')), kOtherUid(std::string(32, '2'));

// The name of a checkpoint of this step by NewestEpoch().
inline std::string NameOf(int64_t step) { return CheckpointFolderName(step, NewestEpoch().epoch); }
// As older builds named it, without the epoch.
inline std::string OldNameOf(int64_t step) {
  const std::string name = NameOf(step);
  return name.substr(0, name.rfind("-gen-"));
}

// Of step `step`, without files.
inline CheckpointManifest TestManifest(int64_t step, const ModelShape& model, const CheckpointFence& fence) {
  CheckpointManifest manifest;
  manifest.job = fence.owner.job.value();
  manifest.job_uid = fence.owner.uid;
  manifest.epoch = fence.epoch;
  manifest.step = step;
  manifest.model = model;
  manifest.seed = 42;
  manifest.data_digest = "0123abcd";
  return manifest;
}

// rank-0.bin or rank-1.bin, every unit's arrays cut at `share` of it (0 and 1 give empty pieces).
inline absl::StatusOr<CheckpointFile> WriteTestFile(const std::string& folder, int rank, const ModelShape& model, double share) {
  const std::vector<UnitSpec> units = ParameterLayout(model);
  std::deque<std::vector<float>> arrays;
  std::vector<PieceData> pieces;
  for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
    const auto cut = static_cast<int64_t>(share * static_cast<double>(units[unit].num_elements));
    const int64_t begin = rank == 0 ? 0 : cut, end = rank == 0 ? cut : units[unit].num_elements;
    for (int t = 0; t < kNumStateTensors; ++t) {
      const auto tensor = static_cast<StateTensor>(t);
      std::vector<float>& values = arrays.emplace_back();
      for (int64_t i = begin; i < end; ++i) values.push_back(ExpectedValue(unit, tensor, i));
      pieces.push_back({unit, tensor, begin, end, [&values] { return values.data(); }});
    }
  }
  return WriteCheckpointFile(folder, "rank-" + std::to_string(rank) + ".bin", DType::kFloat32, pieces);
}

// Writes both files and publishes.
inline absl::StatusOr<CheckpointManifest> WriteTestCheckpoint(const std::string& root, int64_t step, const ModelShape& model,
                                                              double share, const CheckpointFence& fence = NewestEpoch()) {
  CheckpointManifest manifest = TestManifest(step, model, fence);
  std::filesystem::create_directories(root);
  const std::string temporary = root + "/" + TemporaryCheckpointFolderName(step, manifest.epoch, manifest.job_uid);
  for (int rank = 0; rank < 2; ++rank) {
    auto file = WriteTestFile(temporary, rank, model, share);
    if (!file.ok()) return file.status();
    manifest.files.push_back(*file);
  }
  const auto published = PublishCheckpoint(root, manifest, fence);
  if (!published.ok()) return published.status();
  return manifest;
}

inline std::set<std::string> NamesIn(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

}  // namespace motley
