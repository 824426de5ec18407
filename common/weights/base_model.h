// What an export needs of the folder that a job began from: how that folder names and types its tensors, and its small files.
// Kept beside the job's checkpoints, so that neither the folder nor the nodes are needed any more:
//
//   base-0123456789abcdef/     the first digits of the SHA-256 of base.json, which holds the digests of the files
//     base.json
//     files/config.json, files/tokenizer.json, ...
//
// What has the name never changes, and two jobs that began from the same weights share it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/weights/huggingface_weights.h"
#include "common/weights/small_files.h"

namespace motley {

struct BaseTensor {
  std::string name;    // in the files: "h.0.ln_1.weight"
  std::string tensor;  // of the layout: "transformer.h.0.ln_1.weight"; one may have several names
  DType dtype = DType::kFloat32;
  friend bool operator==(const BaseTensor&, const BaseTensor&) = default;
};
struct BaseModel {
  std::vector<BaseTensor> tensors;  // in the order of the layout; none: the job began from other weights than such a folder's
  std::vector<SmallFile> files;     // by name

  // The text of a file, or nullptr.
  const std::string* Find(std::string_view name) const;
};

// All but the files.
BaseModel BaseOf(const HuggingFaceWeights& weights);

// "base-" and digits.
bool IsBaseName(std::string_view name);
// Writes it under `root` unless it is there, and returns its name. `epoch` is the writer's: unfinished ones of two do not meet.
absl::StatusOr<std::string> KeepBase(const BaseModel& base, const std::string& root, int64_t epoch);
// NOT_FOUND names the folder; DATA_LOSS: a file is not what was written.
absl::StatusOr<BaseModel> ReadBase(const std::string& root, const std::string& name);

}  // namespace motley
