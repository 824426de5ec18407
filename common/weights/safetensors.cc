#include "common/weights/safetensors.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/parse_json.h"
#include "common/base/status_macros.h"
#include "common/weights/stored_type.h"

namespace motley {
namespace {

using Json = nlohmann::json;

// A tensor's entry takes 40 bytes at least and has some ten values.
constexpr size_t kFewHeaderValues = 1000, kLeastBytesOfHeaderValue = 3;
constexpr size_t kMostDimensions = 8;

std::optional<int64_t> CountOf(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned()) {
    const auto count = value.get<uint64_t>();
    return count <= INT64_MAX ? std::optional(static_cast<int64_t>(count)) : std::nullopt;
  }
  const auto count = value.get<int64_t>();
  return count >= 0 ? std::optional(count) : std::nullopt;
}

absl::Status BadEntry(const std::string& path, const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": tensor ", Quoted(name), " ", what));
}

absl::Status ReadShape(const Json& shape, const std::string& path, StoredTensor* tensor) {
  if (!shape.is_array() || shape.size() > kMostDimensions) {
    return BadEntry(path, tensor->name, absl::StrCat("must have a shape of at most ", kMostDimensions, " sizes"));
  }
  tensor->num_elements = 1;
  for (const Json& entry : shape) {
    const std::optional<int64_t> size = CountOf(entry);
    if (!size) return BadEntry(path, tensor->name, absl::StrCat("has no size ", EchoJson(entry)));
    tensor->shape.push_back(*size);
    if (__builtin_mul_overflow(tensor->num_elements, *size, &tensor->num_elements)) {
      return BadEntry(path, tensor->name, "has more elements than a file holds");
    }
  }
  return absl::OkStatus();
}

// The offsets count from the end of the header, `data`.
absl::Status ReadOffsets(const Json& offsets, int64_t data, const std::string& path, StoredTensor* tensor) {
  const bool pair = offsets.is_array() && offsets.size() == 2;
  const std::optional<int64_t> begin = pair ? CountOf(offsets[0]) : std::nullopt, end = pair ? CountOf(offsets[1]) : std::nullopt;
  if (!begin || !end || *begin > *end || *end > INT64_MAX - data) {
    return BadEntry(path, tensor->name, "must have data_offsets [begin, end]");
  }
  tensor->begin = data + *begin;
  tensor->end = data + *end;
  const std::optional<DType> dtype = DTypeOfStored(tensor->type);
  if (!dtype) return absl::OkStatus();
  int64_t bytes = 0;
  if (__builtin_mul_overflow(tensor->num_elements, SizeOfBytes(*dtype), &bytes) || bytes != *end - *begin) {
    return BadEntry(path, tensor->name,
                    absl::StrCat("has ", *end - *begin, " bytes, and ", tensor->num_elements, " elements of ", tensor->type));
  }
  return absl::OkStatus();
}

absl::StatusOr<StoredTensor> ReadEntry(const std::string& name, const Json& entry, int64_t data, const std::string& path) {
  StoredTensor tensor;
  tensor.name = name;
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets") ||
      !entry.at("dtype").is_string()) {
    return BadEntry(path, name, "must be an object with dtype, shape and data_offsets");
  }
  tensor.type = entry.at("dtype").get<std::string>();
  MOTLEY_RETURN_IF_ERROR(ReadShape(entry.at("shape"), path, &tensor));
  MOTLEY_RETURN_IF_ERROR(ReadOffsets(entry.at("data_offsets"), data, path, &tensor));
  return tensor;
}

// Neither holes nor overlaps, and nothing behind the last one: what is cut off or was written by halves shows here.
absl::Status CheckCover(const std::vector<StoredTensor>& tensors, int64_t data, int64_t file_bytes, const std::string& path) {
  int64_t at = data;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != at) {
      return BadEntry(path, tensor.name, tensor.begin < at ? "overlaps another one" : "leaves a hole before it");
    }
    at = tensor.end;
  }
  if (at == file_bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " has ", file_bytes, " bytes and its header is of ", at,
                                          at > file_bytes ? ": it is cut off" : "", "; download or copy it again"));
}

}  // namespace

absl::StatusOr<std::vector<StoredTensor>> ParseSafetensorsHeader(std::string_view text, int64_t file_bytes,
                                                                 const std::string& path) {
  MOTLEY_ASSIGN_OR_RETURN(const Json json, ParseJson(text, absl::StrCat(path, ": header"),
                                                     kFewHeaderValues + text.size() / kLeastBytesOfHeaderValue));
  if (!json.is_object()) return absl::InvalidArgumentError(absl::StrCat(path, ": the header must be a JSON object"));
  const int64_t data = kSafetensorsLengthBytes + static_cast<int64_t>(text.size());
  std::vector<StoredTensor> tensors;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") continue;
    MOTLEY_ASSIGN_OR_RETURN(StoredTensor tensor, ReadEntry(name, entry, data, path));
    tensors.push_back(std::move(tensor));
  }
  // An empty one lies before what begins there.
  std::stable_sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  MOTLEY_RETURN_IF_ERROR(CheckCover(tensors, data, file_bytes, path));
  return tensors;
}

absl::StatusOr<SafetensorsFile> OpenSafetensors(FileDescriptor file, const std::string& path) {
  struct stat found;
  if (::fstat(file.get(), &found) != 0) return FileError(errno, "read", path);
  SafetensorsFile opened{path, std::move(file), static_cast<int64_t>(found.st_size), {}};
  unsigned char length[kSafetensorsLengthBytes];
  if (opened.bytes < kSafetensorsLengthBytes) {
    return absl::DataLossError(
        absl::StrCat(path, " has ", opened.bytes, " bytes, which is no safetensors file; download it again"));
  }
  MOTLEY_RETURN_IF_ERROR(ReadAt(opened.file, path, 0, length, kSafetensorsLengthBytes));
  uint64_t bytes = 0;
  for (int64_t i = kSafetensorsLengthBytes; i-- > 0;) bytes = bytes << 8 | length[i];
  if (bytes > static_cast<uint64_t>(opened.bytes - kSafetensorsLengthBytes)) {
    return absl::DataLossError(absl::StrCat(path, " says that its header has ", bytes, " bytes and has ", opened.bytes,
                                            ": it is cut off, or no safetensors file; download it again"));
  }
  if (bytes > static_cast<uint64_t>(kMostSafetensorsHeaderBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has a header of ", bytes, " bytes; at most ", kMostSafetensorsHeaderBytes, " are read"));
  }
  std::string text(bytes, '\0');
  MOTLEY_RETURN_IF_ERROR(ReadAt(opened.file, path, kSafetensorsLengthBytes, text.data(), static_cast<int64_t>(bytes)));
  MOTLEY_ASSIGN_OR_RETURN(opened.tensors, ParseSafetensorsHeader(text, opened.bytes, path));
  return opened;
}

}  // namespace motley
