#include "worker/engine/operators/vocabulary_part.h"

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

RowsOfPart RowsInPart(const at::Tensor& tokens, int64_t first, int64_t rows) {
  const at::Tensor row = tokens.reshape({-1}) - first;
  const at::Tensor index = row.clamp(0, rows - 1);
  return {index, row.ne(index)};
}

}  // namespace motley::engine
