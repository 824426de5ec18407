// Whether what the units of a step make is finite, asked of all of it and answered once a step. A pass leaves one number: a sum,
// for which a card is given one reduction, or what a kernel of our own marked in passing. Nobody waits for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

namespace motley::engine {

// A number of a check, that who makes a pass's tensor may mark in passing: then nobody reads the tensor for it again.
class FiniteMark {
 public:
  FiniteMark() = default;  // nobody asks
  explicit FiniteMark(at::Tensor number) : number_(std::move(number)) {}

  bool asks() const { return number_.defined() && number_.scalar_type() == at::kFloat; }
  // The number, a float32, for who will mark it where something is not finite.
  float* Take() {
    taken_ = true;
    return static_cast<float*>(number_.mutable_data_ptr());
  }
  bool taken() const { return taken_; }

 private:
  at::Tensor number_;
  bool taken_ = false;
};

// One thread at a time.
class FiniteCheck {
 public:
  // For `positions` times `microbatches` passes of a step, in `type`: float32, or float64 for tensors of that. A sum is not
  // finite when an element is not; half numbers are summed in float32: in float16 finite ones soon sum up to infinity.
  FiniteCheck(int64_t positions, int64_t microbatches, const at::TensorOptions& type);

  // What a pass made of the microbatch. Another tensor of the same pass takes its place: one that was made of it.
  void Note(const at::Tensor& made, int64_t position, int64_t microbatch);
  // The same, for who marks it in passing. Not noted behind that: the sum would take the mark's place.
  FiniteMark MarkOf(int64_t position, int64_t microbatch) const;
  // The least position at which something was not finite; `positions` if all was. Waits for the device.
  int64_t First() const;

 private:
  at::Tensor sums_;  // [positions, microbatches]
};

}  // namespace motley::engine
