// What a program says of its units and groups as a whole. Part of Validate (program.h).
#pragma once

#include <cstdint>
#include <vector>

#include "common/program/program.h"

namespace motley {

struct ProgramIndex {
  // `program` has passed ValidateHeader.
  explicit ProgramIndex(const Program& program);

  std::vector<int32_t> place;  // by unit: among the rank's units; -1 = not held
  // By unit: its home among the gradient buffers, whole or the rank's shard; the shard's among those of parameters. -1 = none.
  std::vector<int32_t> gradient_home, parameter_shard;
  std::vector<bool> in_group;     // by group: whether the rank is a member
  std::vector<int64_t> elements;  // by unit: where the last range of its array ends, a shard's apart; 0 = there are none
  // By unit: whether its summed gradients stay in the buffer until they leave for host memory or are stepped there.
  std::vector<bool> sum_stays;
};

}  // namespace motley
