// What a unit's backward holds at its fullest, counted by walking the engine's passes (layer_passes.h) with the bytes of their
// tensors. Profiles measure whole backwards of whole units; this says how halves and slices of them differ.
#pragma once

#include <cstdint>

#include "common/base/dtype.h"
#include "common/model/model.h"
#include "common/model/operators.h"

namespace motley {

// At the fullest moment, beside what the forward kept and the gradient of the output: gradients and temporaries, that of the
// input among them, less what is freed by then. `shape`: of the rank's slice.
int64_t LayerBackwardBytes(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype);
// Of the half that makes the gradient of the input, and of the other: it adds to the gradients that are there.
int64_t LayerBackwardInputBytes(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype);
int64_t LayerBackwardWeightBytes(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype);
// Of a head, which has no halves. A `part` of one has kept what its norm made, and the whole makes it first. `rows`: of a chunk
// of logits.
int64_t HeadBackwardBytes(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype, bool part,
                          int64_t rows = kHeadChunkTokens);

}  // namespace motley
