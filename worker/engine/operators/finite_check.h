// Whether what a unit made is finite, as every pass of a step asks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace motley::engine {

// `first`, a scalar on the device, becomes `position` if that is less and `tensor` is not finite. A sum is not finite when an
// element is not; of half numbers it is taken in float32: in float16 finite ones soon sum up to infinity. Nobody waits for the
// device.
void NoteFinite(const at::Tensor& tensor, int64_t position, at::Tensor& first);

}  // namespace motley::engine
