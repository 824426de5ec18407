#include "worker/engine/steps_in_turn.h"

#include <cstddef>
#include <variant>

namespace motley::engine {

std::vector<bool> SteppedInTurn(const Program& program) {
  std::vector<bool> in_turn(static_cast<size_t>(program.num_units), false);
  for (const Instruction& instruction : program.instructions) {
    if (std::holds_alternative<ReduceScalars>(instruction.op)) break;
    const auto* step = std::get_if<OptimizerStep>(&instruction.op);
    if (step == nullptr || step->first_unit < 0) continue;
    for (int32_t unit = step->first_unit; unit <= step->first_unit + step->more_units; ++unit) {
      in_turn[static_cast<size_t>(unit)] = true;
    }
  }
  return in_turn;
}

}  // namespace motley::engine
