#include "common/weights/weights_sample.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"

namespace motley {
namespace {

constexpr int64_t kMostTokenizerBytes = int64_t{256} << 20;

// With its length, so that no two lists of pieces are one text.
void AddPiece(std::string_view piece, Sha256* digest) {
  const std::string length = absl::StrCat(piece.size(), ":");
  digest->Update(length.data(), length.size());
  digest->Update(piece.data(), piece.size());
}

absl::Status AddTensor(const SafetensorsFile& file, const StoredTensor& tensor, std::vector<char>* buffer, Sha256* digest) {
  AddPiece(tensor.name, digest);
  AddPiece(tensor.type, digest);
  AddPiece(absl::StrJoin(tensor.shape, ","), digest);
  const int64_t bytes = tensor.end - tensor.begin, sampled = std::min(bytes, kSampledBytes);
  AddPiece(absl::StrCat(bytes), digest);
  for (const int64_t at : {tensor.begin, tensor.end - sampled}) {
    MOTLEY_RETURN_IF_ERROR(ReadAt(file.file, file.path, at, buffer->data(), sampled));
    AddPiece(std::string_view(buffer->data(), static_cast<size_t>(sampled)), digest);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> DigestOfFile(const std::string& path, const OpenPath& open) {
  const absl::StatusOr<FileDescriptor> file = open(path);
  if (absl::IsNotFound(file.status())) return std::string();
  MOTLEY_RETURN_IF_ERROR(file.status());
  Sha256 digest;
  int64_t bytes = 0;
  MOTLEY_RETURN_IF_ERROR(ForEachBlock(*file, path, [&](std::string_view block) -> absl::Status {
    digest.Update(block.data(), block.size());
    bytes += static_cast<int64_t>(block.size());
    if (bytes <= kMostTokenizerBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(path, " is larger than ", kMostTokenizerBytes, " bytes: it is no tokenizer"));
  }));
  return digest.Hex();
}

}  // namespace

absl::StatusOr<WeightsSample> SampleWeights(const std::string& folder, const OpenPath& open) {
  MOTLEY_ASSIGN_OR_RETURN(const WeightsFolder opened, OpenWeightsFolder(folder, open));
  Sha256 digest;
  AddPiece(opened.config, &digest);
  AddPiece(opened.index, &digest);
  // By name: which file of several holds a tensor is in the index.
  std::map<std::string, std::pair<const SafetensorsFile*, const StoredTensor*>> tensors;
  for (const SafetensorsFile& file : opened.files) {
    for (const StoredTensor& tensor : file.tensors) {
      if (tensors.try_emplace(tensor.name, &file, &tensor).second) continue;
      return absl::InvalidArgumentError(absl::StrCat(folder, " holds tensor ", tensor.name, " in two files"));
    }
  }
  std::vector<char> buffer(kSampledBytes);
  for (const auto& [name, place] : tensors) MOTLEY_RETURN_IF_ERROR(AddTensor(*place.first, *place.second, &buffer, &digest));
  WeightsSample sample;
  sample.digest = digest.Hex();
  MOTLEY_ASSIGN_OR_RETURN(sample.tokenizer, DigestOfFile(absl::StrCat(folder, "/", kTokenizerName), open));
  return sample;
}

}  // namespace motley
