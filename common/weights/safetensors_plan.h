// Which tensors lie in which files of a model that is written, and those files' headers. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/dtype.h"
#include "common/model/parameters.h"

namespace motley {

// As hubs have it: larger models are in several files.
inline constexpr int64_t kMostShardBytes = 5'000'000'000;

struct WrittenTensor {
  std::string name;  // in the file
  int unit = 0;
  TensorSpec spec;  // of the unit's layout
  DType dtype = DType::kFloat32;
  int64_t bytes() const { return spec.num_elements * SizeOfBytes(dtype); }
};
struct WrittenFile {
  std::string name;  // "model.safetensors", "model-00001-of-00003.safetensors"
  std::vector<WrittenTensor> tensors;
};

// In the order given. A tensor is in one file; one that is larger than `most_bytes` has a file of its own.
std::vector<WrittenFile> PlanFiles(std::vector<WrittenTensor> tensors, int64_t most_bytes);
// Length and JSON, padded to 8 bytes: what comes before the arrays.
std::string SafetensorsHeader(const WrittenFile& file);
// model.safetensors.index.json; of one file there is none.
std::string SafetensorsIndex(const std::vector<WrittenFile>& files);

}  // namespace motley
