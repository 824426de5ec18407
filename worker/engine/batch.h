// One rank's samples of a step, as the tensors that its microbatches compute on. Thread-compatible.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/data/dataset.h"
#include "common/program/program.h"

namespace motley::engine {

// By microbatch: [samples, seq_len] int64, views of one tensor. Undefined where the rank has neither the embedding nor the head.
struct Batch {
  std::vector<at::Tensor> tokens, targets;
};

// The dataset's indices of a microbatch's samples.
using SamplesOf = std::function<std::vector<int64_t>(const Microbatch&)>;

// `device`: where the tensors are to be. Errors are of the data's reading; but for Fault::kStorage they are this node's
// (Fault::kNode).
absl::StatusOr<Batch> MakeBatch(const Dataset& data, Split split, const Program& program, int64_t seq_len, c10::Device device,
                                const SamplesOf& samples_of);

// ---- its parts, where what is written is not yet where it is used ----

// Numbers of a batch. 0: the rank has neither the embedding nor the head.
int64_t BatchSize(const Program& program, int64_t seq_len);
// Writes so many: the tokens of all microbatches, then their targets.
absl::Status WriteBatch(const Dataset& data, Split split, const Program& program, int64_t seq_len, const SamplesOf& samples_of,
                        int64_t* numbers);
// The views of a tensor of what WriteBatch writes; of an undefined one where that is nothing.
Batch ViewsOf(const at::Tensor& numbers, const Program& program, int64_t seq_len);

}  // namespace motley::engine
