// What an export needs of the folder that a job began from: how that folder names and types its tensors, and its small files.
// Kept beside the job's checkpoints, so that neither the folder nor the nodes are needed any more:
//
//   base-0123456789abcdef/     the first digits of the SHA-256 of base.json, which holds the digests of the files
//     base.json
//     files/config.json, files/tokenizer.json, ...
//     job-<uid>                  of each job that keeps it there: who else needs it
//   .tmp-base-0123456789abcdef-gen-3-job-<uid>     being written, or deleted, by epoch 3
//
// What has the name never changes, and two jobs that began from the same weights share it. Builds from before wrote no uid. No
// part of it is a link: who reads it may be led nowhere else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/base/ids.h"
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

// With what it is known by, which takes a look at all its bytes.
struct NamedBase {
  explicit NamedBase(BaseModel base);
  BaseModel base;
  std::string document, name;  // base.json, "base-0123456789abcdef"
};

// All but the files.
BaseModel BaseOf(const HuggingFaceWeights& weights);

inline constexpr char kBaseDocument[] = "base.json";
// "base-" and digits.
bool IsBaseName(std::string_view name);
// ".tmp-base-0123456789abcdef-gen-3-job-<uid>", of a job without a uid without the last.
std::string UnfinishedBaseName(const std::string& name, int64_t epoch, const JobUid& uid);
// Whose marks are in it. NOT_FOUND, or INVALID_ARGUMENT where it is no folder.
absl::StatusOr<std::vector<JobUid>> KeepersOf(const std::string& root, const std::string& name);

// Sees that it is whole under `root`, or writes it, and that the job's mark is there beside other jobs'. `epoch` is the writer's:
// unfinished ones of two do not meet. INVALID_ARGUMENT: something else has the name, a link above all.
absl::Status KeepBase(const NamedBase& base, const std::string& root, int64_t epoch, const JobUid& uid);
// Of a text of base.json: the paths of its files ("base-.../files/config.json") and their digests (SHA-256, hex). DATA_LOSS: it
// is not this base's.
absl::StatusOr<std::map<std::string, std::string>> FilesOfBase(const std::string& document, const std::string& name);
// NOT_FOUND names the folder; DATA_LOSS: a file is not what was written; INVALID_ARGUMENT: something is a link.
absl::StatusOr<BaseModel> ReadBase(const std::string& root, const std::string& name);

}  // namespace motley
