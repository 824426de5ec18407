// The element types of safetensors files that weights are stored in, and the way from and to the types of training.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/dtype.h"

namespace motley {

struct StoredTypeName {
  DType dtype;
  std::string_view name;  // as safetensors spells it
};
inline constexpr std::array kStoredTypes = {StoredTypeName{DType::kBFloat16, "BF16"}, StoredTypeName{DType::kFloat16, "F16"},
                                            StoredTypeName{DType::kFloat32, "F32"}, StoredTypeName{DType::kFloat64, "F64"}};

// Null: a type that weights are not trained from, integers above all.
constexpr std::optional<DType> DTypeOfStored(std::string_view name) {
  for (const StoredTypeName& type : kStoredTypes) {
    if (type.name == name) return type.dtype;
  }
  return std::nullopt;
}
constexpr std::string_view StoredNameOf(DType dtype) {
  for (const StoredTypeName& type : kStoredTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return "F32";
}

// `count` elements of one type as elements of another: exact where that holds more, else rounded to the nearest, ties to even.
// The state's types are float32 and float64: one of both sides is one of them. Returns the index of the first element that is
// NaN or infinite, before or after; -1: all are finite. Both arrays may lie at any address.
int64_t ConvertElements(DType from, const void* in, int64_t count, DType to, void* out);

}  // namespace motley
