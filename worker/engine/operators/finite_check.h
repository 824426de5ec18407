// Whether what the units of a step make is finite, asked of all of it and answered once a step. A pass writes one sum, so a card
// is given one reduction and nobody waits for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace motley::engine {

// One thread at a time.
class FiniteCheck {
 public:
  // For `positions` times `microbatches` passes of a step, in `type`: float32, or float64 for tensors of that. A sum is not
  // finite when an element is not; half numbers are summed in float32: in float16 finite ones soon sum up to infinity.
  FiniteCheck(int64_t positions, int64_t microbatches, const at::TensorOptions& type);

  // What a pass made of the microbatch. Another tensor of the same pass takes its place: one that was made of it.
  void Note(const at::Tensor& made, int64_t position, int64_t microbatch);
  // The least position at which something was not finite; `positions` if all was. Waits for the device.
  int64_t First() const;

 private:
  at::Tensor sums_;  // [positions, microbatches]
};

}  // namespace motley::engine
