// Element types of training. float64 is a test type: it makes equality with PyTorch visible to 1e-10. In a half type weights are
// gathered and computed with; the state stays in float32 (docs/use/training-semantics.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace motley {

enum class DType { kFloat32, kFloat64, kFloat16, kBFloat16 };

inline int64_t SizeOfBytes(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 8;
    case DType::kFloat32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
  }
  return 4;
}
inline bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }
// The one table of spellings, for files and flags alike; what Motley writes has the long ones.
struct DTypeSpelling {
  DType dtype;
  std::string_view name, abbreviation, alias;  // PyTorch's alias; of those that have none the name
};
inline constexpr DTypeSpelling kDTypeSpellings[] = {{DType::kFloat32, "float32", "fp32", "float"},
                                                    {DType::kFloat64, "float64", "fp64", "double"},
                                                    {DType::kFloat16, "float16", "fp16", "half"},
                                                    {DType::kBFloat16, "bfloat16", "bf16", "bfloat16"}};
inline std::string_view DTypeName(DType dtype) {
  for (const DTypeSpelling& spelling : kDTypeSpellings) {
    if (spelling.dtype == dtype) return spelling.name;
  }
  return "float32";
}
inline absl::StatusOr<DType> ParseDType(std::string_view name) {
  for (const DTypeSpelling& spelling : kDTypeSpellings) {
    if (name == spelling.name || name == spelling.abbreviation || name == spelling.alias) return spelling.dtype;
  }
  return absl::InvalidArgumentError("dtype '" + std::string(name) + "' is not known; use float32, float16, bfloat16 or float64");
}

}  // namespace motley
