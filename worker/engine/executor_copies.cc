// The copy lane: inputs of units to host memory and back.
#include <ATen/ATen.h>

#include <cstring>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/executor_pass.h"

namespace motley::engine {
namespace {

// Of a layer, and of the head.
constexpr auto kInput = static_cast<size_t>(LayerValue::kInput);
static_assert(kInput == 0, "the head's input is the first of what it keeps, too");

}  // namespace

absl::Status Executor::Pass::Copy(Direction direction, char* to, const char* from, int64_t bytes) {
  DeviceMemory* const memory = e_.backend_.memory();
  return e_.host_link_.Copy(direction, bytes, [&](int64_t offset, int64_t part) {
    if (memory != nullptr) {
      return memory->CopyAsync(to + offset, from + offset, part, e_.backend_.StreamOf(Lane::kCopy)->handle());
    }
    std::memcpy(to + offset, from + offset, static_cast<size_t>(part));
    return absl::OkStatus();
  });
}

// Nothing else has the input: who made it handed it on, and what a layer keeps beside it are tensors of their own.
absl::Status Executor::Pass::Do(const OffloadActivation& op) {
  std::vector<at::Tensor>& kept = saved_[op.unit][op.microbatch].tensors;
  TORCH_CHECK(kept.size() > kInput && kept[kInput].defined(), "unit ", op.unit, " has not kept its input");
  const at::Tensor input = std::exchange(kept[kInput], at::Tensor());
  TORCH_CHECK(input.is_contiguous(), "the input of unit ", op.unit, " does not lie in one piece");
  const auto* const from = static_cast<const char*>(input.const_data_ptr());
  const absl::Status copied =
      Copy(Direction::kEgress, e_.host_tier_.InputOf(op.unit, op.microbatch), from, static_cast<int64_t>(input.nbytes()));
  e_.backend_.UsedOn(input, Lane::kCopy);
  return copied;
}

absl::Status Executor::Pass::Do(const PrefetchActivation& op) {
  const int64_t rows = program_.microbatches[op.microbatch].samples * assignment().config.training.seq_len;
  const int64_t hidden = assignment().model.hidden_size;
  const at::ScalarType type = ScalarTypeOf(e_.precision_.compute);
  const int64_t bytes = rows * hidden * SizeOfBytes(e_.precision_.compute);
  const at::Tensor input = e_.slots_[op.slot].narrow(0, 0, bytes).view(type).view({rows, hidden});
  MOTLEY_RETURN_IF_ERROR(Copy(Direction::kIngress, static_cast<char*>(input.mutable_data_ptr()),
                              e_.host_tier_.InputOf(op.unit, op.microbatch), bytes));
  saved_[op.unit][op.microbatch].tensors[kInput] = input;
  return absl::OkStatus();
}

void Executor::Pass::LeaveSlot(Saved& saved) {
  if (saved.tensors.size() <= kInput || !saved.tensors[kInput].defined()) return;
  at::Tensor& input = saved.tensors[kInput];
  for (const at::Tensor& slot : e_.slots_) {
    if (input.is_alias_of(slot)) input = at::empty_like(input).copy_(input);
  }
}

}  // namespace motley::engine
