#include "common/program/host_state.h"

#include "common/program/host_slots.h"

namespace motley {

int64_t HostState::AreaBytes() const { return (total() + kHostSlotAlignment - 1) / kHostSlotAlignment * kHostSlotAlignment; }

HostState HostStateOf(const OffloadKinds& offloads, int64_t owned, int64_t state_bytes, int64_t compute_bytes) {
  HostState state;
  if (offloads.gradients) state.gradient = owned * state_bytes;
  if (offloads.parameters) state.parameter = owned * state_bytes;
  if (offloads.optimizer) state.moment = owned * state_bytes;
  if (offloads.parameters && compute_bytes != state_bytes) state.cast = owned * compute_bytes;
  return state;
}

}  // namespace motley
