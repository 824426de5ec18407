#include "common/program/program_index.h"

#include <algorithm>

namespace motley {
namespace {

// Whether it fills or sums a rank's shard.
template <typename Op>
bool IsOfShard(const Program& program, const Op& op) {
  const auto is_shard = [](const std::vector<UnitBuffer>& buffers, int32_t buffer) {
    return buffer >= 0 && static_cast<size_t>(buffer) < buffers.size() && buffers[static_cast<size_t>(buffer)].IsShard();
  };
  if constexpr (requires { op.buffer; }) return is_shard(program.parameter_buffers, op.buffer);
  if constexpr (requires { op.grad; }) return is_shard(program.gradient_buffers, op.grad);
  return false;
}

}  // namespace

ProgramIndex::ProgramIndex(const Program& program)
    : place(program.num_units, -1),
      gradient_home(program.num_units, -1),
      parameter_shard(program.num_units, -1),
      elements(program.num_units, 0),
      sum_stays(program.num_units, false) {
  for (size_t i = 0; i < program.units.size(); ++i) place[program.units[i]] = static_cast<int32_t>(i);
  for (size_t i = 0; i < program.gradient_buffers.size(); ++i) {
    const UnitBuffer& buffer = program.gradient_buffers[i];
    if (buffer.home_of < 0) continue;
    for (int32_t k = 0; k < buffer.num_units; ++k) gradient_home[buffer.home_of + k] = static_cast<int32_t>(i);
  }
  for (size_t i = 0; i < program.parameter_buffers.size(); ++i) {
    const UnitBuffer& buffer = program.parameter_buffers[i];
    if (buffer.IsShard()) parameter_shard[buffer.home_of] = static_cast<int32_t>(i);
  }
  for (const std::vector<int32_t>& members : program.groups) {
    in_group.push_back(std::find(members.begin(), members.end(), program.rank) != members.end());
  }
  const auto exists = [&program](int64_t unit) { return unit >= 0 && unit < program.num_units; };
  const auto stay = [&](int64_t first, int64_t more) {
    for (int64_t unit = first; unit <= first + more && exists(unit); ++unit) sum_stays[unit] = true;
  };
  for (const Instruction& instruction : program.instructions) {
    std::visit(
        [&](const auto& op) {
          if constexpr (requires { op.elements; }) {
            if (exists(op.unit) && !IsOfShard(program, op)) elements[op.unit] = std::max(elements[op.unit], op.elements.end());
          }
        },
        instruction.op);
    const auto* leaves = std::get_if<OffloadGradients>(&instruction.op);
    const auto* step = std::get_if<OptimizerStep>(&instruction.op);
    if (leaves != nullptr) stay(leaves->unit, leaves->more_units);
    if (step != nullptr && step->grad >= 0) stay(step->first_unit, step->more_units);
  }
}

}  // namespace motley
