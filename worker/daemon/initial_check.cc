#include "worker/daemon/initial_check.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/byte_tokenizer.h"
#include "common/weights/small_files.h"
#include "common/weights/weights_sample.h"

namespace motley::worker {
namespace {

constexpr char kInitialKey[] = "checkpoint.initial";

// Errors of opening begin with the key already.
absl::Status WithInitialKey(const absl::Status& status) {
  const std::string text(status.message());
  return text.starts_with(kInitialKey) ? status : absl::Status(status.code(), absl::StrCat(kInitialKey, ": ", text));
}

absl::StatusOr<WeightsSample> SampleBeneath(const std::string& path, const FileRoots& roots) {
  const OpenPath open = [&roots](const std::string& file) { return roots.OpenForRead(kInitialKey, file); };
  MOTLEY_ASSIGN_OR_RETURN(const std::string folder, FindWeightsFolder(path, open));
  if (folder.empty()) return WeightsSample();
  MOTLEY_RETURN_IF_ERROR(CheckSmallFiles(folder, open));
  return SampleWeights(folder, open);
}

}  // namespace

absl::Status CheckInitial(const std::string& path, const FileRoots& roots, StorageReport* report) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<WeightsSample> sample = SampleBeneath(path, roots);
  if (!sample.ok()) return WithInitialKey(sample.status());
  report->initial_digest = std::move(sample->digest);
  // Of an own export: bytes are no tokenizer that tokens could be of.
  if (sample->tokenizer != Sha256Hex(ByteTokenizer())) report->initial_tokenizer = std::move(sample->tokenizer);
  return absl::OkStatus();
}

}  // namespace motley::worker
