// One rank's samples of a step, as the tensors that its microbatches compute on. Thread-compatible.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "common/data/dataset.h"
#include "common/program/program.h"

namespace motley::engine {

// By microbatch: [samples, seq_len] int64. Undefined where the rank has neither the embedding nor the head.
struct Batch {
  std::vector<at::Tensor> tokens, targets;
};

enum class Split { kTrain, kValidation };

// `samples_of`: the dataset's indices of a microbatch's samples. `device`: where the tensors are to be.
Batch MakeBatch(const Dataset& data, Split split, const Program& program, int64_t seq_len, c10::Device device,
                const std::function<std::vector<int64_t>(const Microbatch&)>& samples_of);

}  // namespace motley::engine
