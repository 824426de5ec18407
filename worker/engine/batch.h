// One rank's samples of a step, as the tensors that its microbatches compute on. Thread-compatible.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "common/data/dataset.h"

namespace motley::engine {

// By microbatch: [samples, seq_len] int64.
struct Batch {
  std::vector<at::Tensor> tokens, targets;
};

enum class Split { kTrain, kValidation };

// `samples`: dataset indices, as many as the microbatches have in all.
Batch MakeBatch(const Dataset& data, Split split, std::span<const int64_t> samples, const std::vector<int64_t>& microbatches,
                int64_t seq_len);

}  // namespace motley::engine
