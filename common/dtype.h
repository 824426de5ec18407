// Element types of training. float64 is a test type: it makes equality with PyTorch visible to 1e-10.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace motley {

enum class DType { kFloat32, kFloat64 };

inline int64_t SizeOfBytes(DType dtype) { return dtype == DType::kFloat64 ? 8 : 4; }
inline std::string_view DTypeName(DType dtype) { return dtype == DType::kFloat64 ? "float64" : "float32"; }
inline absl::StatusOr<DType> ParseDType(std::string_view name) {
  if (name == "float32") return DType::kFloat32;
  if (name == "float64") return DType::kFloat64;
  return absl::InvalidArgumentError("dtype '" + std::string(name) + "' is not known; use float32 or float64");
}

}  // namespace motley
