// The buffers that a program declares.
#include <cstddef>
#include <vector>

#include "worker/engine/executor.h"

namespace motley::engine {

void Executor::MakeBuffers(std::vector<at::Tensor>& buffers, const std::vector<UnitBuffer>& wanted, at::Tensor UnitState::*shard,
                           DType type) {
  const bool takes_in = type == precision_.master;     // what the state is in
  const bool is_zero = shard == &UnitState::gradient;  // as gradients are between steps
  if (buffers.size() < wanted.size()) buffers.resize(wanted.size());
  for (size_t b = 0; b < wanted.size(); ++b) {
    if (buffers[b].defined() && buffers[b].numel() >= wanted[b].elements) continue;
    UnitState* const home_of = wanted[b].home_of < 0 || !takes_in ? nullptr : &state_.units()[wanted[b].home_of];
    // The shard is the whole unit: no second one beside it.
    if (home_of != nullptr && !is_zero && home_of->size() == wanted[b].elements) {
      buffers[b] = home_of->*shard;
      continue;
    }
    buffers[b] = at::zeros({wanted[b].elements}, OptionsOf(ScalarTypeOf(type)));
    if (home_of == nullptr) continue;
    UnitState& own = *home_of;
    const at::Tensor range = buffers[b].narrow(0, own.begin, own.size());
    if (!is_zero) range.copy_(own.*shard);
    own.*shard = range;
  }
}

void Executor::FreeShardsOfGradients(const Program& program) {
  if (gradient_buffers_.size() >= program.gradient_buffers.size()) return;  // they have their homes
  for (const UnitBuffer& buffer : program.gradient_buffers) {
    if (buffer.home_of >= 0) state_.units()[buffer.home_of].gradient = at::Tensor();
  }
}

}  // namespace motley::engine
