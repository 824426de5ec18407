// The header of a safetensors file: u64 length n, JSON of n bytes, {"NAME": {"dtype", "shape", "data_offsets"}, ...}, then the
// arrays.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/files.h"

namespace motley {

inline constexpr int64_t kSafetensorsLengthBytes = 8;
// Ten times what the largest model that is read has in one file.
inline constexpr int64_t kMostSafetensorsHeaderBytes = int64_t{16} << 20;

struct StoredTensor {
  std::string name;
  std::string type;  // "BF16"; any word: who reads it looks whether it knows it
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  // bytes of the file
  int64_t num_elements = 0;    // of the shape
};

// `text`: the JSON. The tensors in the order of their bytes, which cover the rest of the file once, as the format has it.
// INVALID_ARGUMENT, naming `path`: not such a header. DATA_LOSS: the file is shorter than its header says, or longer.
absl::StatusOr<std::vector<StoredTensor>> ParseSafetensorsHeader(std::string_view text, int64_t file_bytes,
                                                                 const std::string& path);

struct SafetensorsFile {
  std::string path;
  FileDescriptor file;
  int64_t bytes = 0;
  std::vector<StoredTensor> tensors;
};
// Reads the header of an open file; the same errors.
absl::StatusOr<SafetensorsFile> OpenSafetensors(FileDescriptor file, const std::string& path);

}  // namespace motley
