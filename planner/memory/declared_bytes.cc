// What a program's header and kinds say of bytes: no walk.
#include <cstddef>
#include <numeric>

#include "common/program/host_slots.h"
#include "planner/memory/program_memory.h"

namespace motley::planner {
namespace {

int64_t ElementsBesideHomes(const std::vector<UnitBuffer>& buffers) {
  int64_t elements = 0;
  for (const UnitBuffer& buffer : buffers) elements += buffer.home_of < 0 ? buffer.elements : 0;
  return elements;
}

}  // namespace

HostMemoryByPurpose HostBytes(const Costs& costs, const Program& program, std::span<const int64_t> owned) {
  HostMemoryByPurpose memory;
  if (program.offloads.activations) memory.inputs = AssignHostSlots(program).BlockBytes(costs.BoundaryBytes(1));
  if (!program.offloads.takes_state()) return memory;
  for (const int32_t unit : program.units) {
    const HostState state = costs.InHost(program.offloads, static_cast<double>(owned[static_cast<size_t>(unit)]));
    const int64_t filling = state.AreaBytes() - state.total();
    memory.parameters += state.parameter + state.cast;
    memory.gradients += state.gradient;
    memory.optimizer += 2 * state.moment;
    (program.offloads.parameters ? memory.parameters : memory.optimizer) += filling;
  }
  return memory;
}

int64_t SlotBytes(const Program& program) { return std::accumulate(program.slots.begin(), program.slots.end(), int64_t{0}); }

int64_t GatheredBytes(const Costs& costs, const Program& program) {
  return costs.element_bytes() * ElementsBesideHomes(program.parameter_buffers) +
         costs.gradient_bytes() * ElementsBesideHomes(program.gradient_buffers);
}

}  // namespace motley::planner
