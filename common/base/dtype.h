// Element types of training. float64 is a test type: it makes equality with PyTorch visible to 1e-10. In a half type weights are
// gathered and computed with; the state stays in float32 (docs/training-semantics.md).
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
inline std::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "float64";
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
  }
  return "float32";
}
// Long and short names: float32 or fp32, float16 or fp16, bfloat16 or bf16, float64 or fp64.
inline absl::StatusOr<DType> ParseDType(std::string_view name) {
  if (name == "float32" || name == "fp32") return DType::kFloat32;
  if (name == "float64" || name == "fp64") return DType::kFloat64;
  if (name == "float16" || name == "fp16") return DType::kFloat16;
  if (name == "bfloat16" || name == "bf16") return DType::kBFloat16;
  return absl::InvalidArgumentError("dtype '" + std::string(name) + "' is not known; use float32, float16, bfloat16 or float64");
}

}  // namespace motley
