// ATen's name of an element type.
#pragma once

#include <c10/core/ScalarType.h>

#include "common/base/dtype.h"

namespace motley::engine {

inline at::ScalarType ScalarTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return at::kDouble;
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat16:
      return at::kHalf;
    case DType::kBFloat16:
      return at::kBFloat16;
  }
  return at::kFloat;
}

}  // namespace motley::engine
