// The buffers and slots that a program declares.
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/executor.h"

namespace motley::engine {

void Executor::MakeBuffers(std::vector<UnitArray>& buffers, const std::vector<UnitBuffer>& wanted, at::Tensor RangeState::*shard,
                           DType type) {
  const bool is_zero = shard == &RangeState::gradient;  // as gradients are between steps
  const bool waits = !is_zero && assignment_.program.offloads.parameters;
  const bool takes_in = type == precision_.master && !waits;  // what the state is in
  if (buffers.size() < wanted.size()) buffers.resize(wanted.size());
  for (size_t b = 0; b < wanted.size(); ++b) {
    if (buffers[b].defined() && buffers[b].flat().numel() >= wanted[b].elements) continue;
    const bool is_home = wanted[b].home_of >= 0 && takes_in;
    const std::span<RangeState> owned = is_home ? state_.Of(wanted[b].home_of) : std::span<RangeState>();
    // The shard is the whole block: no second one beside it.
    if (!is_zero && owned.size() == 1 && owned[0].size() == wanted[b].elements) {
      buffers[b] = owned[0].*shard;
      continue;
    }
    const MemoryPurpose of_home = is_zero ? MemoryPurpose::kGradients : MemoryPurpose::kParameters;
    const CountingAs counting(wanted[b].home_of >= 0 ? of_home : MemoryPurpose::kGathered);
    buffers[b] = at::zeros({wanted[b].elements}, OptionsOf(ScalarTypeOf(type)));
    for (RangeState& own : owned) {
      const std::vector<LocalPiece> pieces = arrays_.In(wanted[b]).PiecesOf(own.block, own.begin, own.end);
      TORCH_CHECK(pieces.size() == 1 && pieces[0].elements == own.size(), "elements ", own.begin, " to ", own.end, " of block ",
                  own.block, " are not in the rank's part");
      const at::Tensor range = buffers[b].flat().narrow(0, pieces[0].in_array, own.size());
      if (!is_zero) range.copy_(own.*shard);
      own.*shard = range;
    }
  }
}

void Executor::MakeSlots(const std::vector<int64_t>& wanted) {
  const CountingAs counting(MemoryPurpose::kSlots);
  if (slots_.size() < wanted.size()) slots_.resize(wanted.size());
  for (size_t s = 0; s < wanted.size(); ++s) {
    if (!slots_[s].defined() || slots_[s].numel() < wanted[s]) slots_[s] = at::empty({wanted[s]}, OptionsOf(at::kByte));
  }
}

MeasuredMemory Executor::Memory() const {
  const std::optional<MemoryByPurpose> most = backend_.MostByPurpose();
  return {most ? *most : Held(), most.has_value(), host_tier_.by_purpose()};
}

MemoryByPurpose Executor::Held() const {
  MemoryByPurpose held;
  absl::flat_hash_set<const void*> counted;
  const auto add = [&](const at::Tensor& tensor, int64_t& bytes) {
    if (tensor.defined() && counted.insert(tensor.storage().data()).second)
      bytes += static_cast<int64_t>(tensor.storage().nbytes());
  };
  // A home has what the rank owns in it.
  const auto add_buffers = [&](const std::vector<UnitArray>& buffers, const std::vector<UnitBuffer>& wanted, int64_t& of_homes) {
    for (size_t b = 0; b < buffers.size(); ++b) {
      add(buffers[b].flat(), b < wanted.size() && wanted[b].home_of >= 0 ? of_homes : held.gathered);
    }
  };
  const Program& program = assignment_.program;
  add_buffers(parameter_buffers_, program.parameter_buffers, held.parameters);
  add_buffers(gradient_buffers_, program.gradient_buffers, held.gradients);
  for (const at::Tensor& slot : slots_) add(slot, held.slots);
  for (const RangeState& own : state_.ranges()) {
    if (!program.offloads.parameters) add(own.parameter, precision_.mixed() ? held.optimizer : held.parameters);
    if (!program.offloads.gradients) add(own.gradient, held.gradients);
    if (program.offloads.optimizer) continue;
    add(own.exp_avg, held.optimizer);
    add(own.exp_avg_sq, held.optimizer);
  }
  return held;
}

}  // namespace motley::engine
