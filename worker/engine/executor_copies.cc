// The copy lane: inputs of units and their state to host memory and back.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/executor_pass.h"

namespace motley::engine {

absl::Status Executor::Pass::Copy(Direction direction, const std::vector<Piece>& pieces) {
  DeviceMemory* const memory = e_.backend_.memory();
  const auto copy = [&](char* to, const char* from, int64_t bytes) -> absl::Status {
    if (memory != nullptr) return memory->CopyAsync(to, from, bytes, e_.backend_.StreamOf(Lane::kCopy)->handle());
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  };
  int64_t all = 0, done = 0;  // of `piece`
  for (const Piece& piece : pieces) all += piece.bytes;
  auto piece = pieces.begin();
  // The link's parts are its own, and none when a rank has nothing of a unit.
  return e_.host_link_.Copy(direction, all, [&](int64_t, int64_t part) -> absl::Status {
    while (part > 0) {
      const int64_t bytes = std::min(part, piece->bytes - done);
      MOTLEY_RETURN_IF_ERROR(copy(piece->to + done, piece->from + done, bytes));
      part -= bytes;
      done += bytes;
      if (done < piece->bytes) continue;
      ++piece;
      done = 0;
    }
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
      Copy(Direction::kEgress, {{e_.host_tier_.InputOf(op.unit, op.microbatch), from, static_cast<int64_t>(input.nbytes())}});
  e_.backend_.UsedOn(input, Lane::kCopy);
  return copied;
}

absl::Status Executor::Pass::Do(const PrefetchActivation& op) {
  const int64_t rows = program_.microbatches[op.microbatch].samples * assignment().config.training.seq_len;
  const int64_t hidden = assignment().model.hidden_size;
  const at::ScalarType type = ScalarTypeOf(e_.precision_.compute);
  const int64_t bytes = rows * hidden * SizeOfBytes(e_.precision_.compute);
  const at::Tensor input = e_.slots_[op.slot].narrow(0, 0, bytes).view(type).view({rows, hidden});
  MOTLEY_RETURN_IF_ERROR(Copy(Direction::kIngress, {{static_cast<char*>(input.mutable_data_ptr()),
                                                     e_.host_tier_.InputOf(op.unit, op.microbatch), bytes}}));
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

template <typename Use>
void Executor::Pass::ForEachOwned(int32_t unit, const UnitBuffer& buffer, int64_t part, int64_t bytes, Use use) {
  for (const RangeState& own : e_.state_.Of(unit)) {
    char* const in_area = e_.host_tier_.areas().Of(unit) + part + own.in_area * bytes;
    for (const LocalPiece& piece : e_.arrays_.In(buffer).PiecesOf(unit, own.begin, own.end)) {
      use(in_area + piece.in_range * bytes, piece.in_array * bytes, piece.elements * bytes);
    }
  }
}

absl::Status Executor::Pass::Do(const PrefetchParameters& op) {
  auto* const array = static_cast<char*>(e_.parameter_buffers_[op.buffer].flat().mutable_data_ptr());
  const HostState& layout = e_.host_tier_.areas().LayoutOf(op.unit);
  const int64_t part = e_.precision_.mixed() ? layout.CastAt() : layout.ParameterAt();
  std::vector<Piece> pieces;
  ForEachOwned(op.unit, program_.parameter_buffers[op.buffer], part, SizeOfBytes(e_.precision_.compute),
               [&](const char* on_host, int64_t in_array, int64_t bytes) {
                 pieces.push_back({array + in_array, on_host, bytes});
               });
  return Copy(Direction::kIngress, pieces);
}

absl::Status Executor::Pass::Do(const OffloadGradients& op) {
  const auto* const array = static_cast<const char*>(e_.gradient_buffers_[op.grad].flat().const_data_ptr());
  std::vector<Piece> pieces;
  ForEachOwned(op.unit, program_.gradient_buffers[op.grad], 0, SizeOfBytes(e_.precision_.master),
               [&](char* on_host, int64_t in_array, int64_t bytes) {
                 pieces.push_back({on_host, array + in_array, bytes});
               });
  return Copy(Direction::kEgress, pieces);
}

absl::Status Executor::Pass::Do(const PrefetchOptimizer& op) {
  auto* const slot = static_cast<char*>(e_.slots_[op.slot].mutable_data_ptr());
  return Copy(Direction::kIngress,
              {{slot, e_.host_tier_.areas().Of(op.unit), e_.host_tier_.areas().LayoutOf(op.unit).StepNeeds()}});
}

absl::Status Executor::Pass::Do(const OffloadOptimizer& op) {
  const auto* const slot = static_cast<const char*>(e_.slots_[op.slot].const_data_ptr());
  const HostState& layout = e_.host_tier_.areas().LayoutOf(op.unit);
  const int64_t made_at = layout.total() - layout.StepMakes();
  return Copy(Direction::kEgress, {{e_.host_tier_.areas().Of(op.unit) + made_at, slot + made_at, layout.StepMakes()}});
}

}  // namespace motley::engine
