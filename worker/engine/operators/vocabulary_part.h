// Tokens as rows of a part of the vocabulary, of which tensor parallelism gives each rank one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace motley::engine {

struct RowsOfPart {
  at::Tensor index;      // of the part's rows; of a token elsewhere some row
  at::Tensor elsewhere;  // whether another part has it
};
// Of rows [first, first + rows); both are one-dimensional. Nothing comes back from the device.
RowsOfPart RowsInPart(const at::Tensor& tokens, int64_t first, int64_t rows);

}  // namespace motley::engine
