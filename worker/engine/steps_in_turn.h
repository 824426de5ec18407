// Which units a program steps before the scalars: as soon as they are summed, before anybody knows the norm of all gradients or
// whether all was finite. Knows no torch.
#pragma once

#include <vector>

#include "common/program/program.h"

namespace motley::engine {

// By unit.
std::vector<bool> SteppedInTurn(const Program& program);

}  // namespace motley::engine
