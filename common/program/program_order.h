// Which instruction of a program has surely finished when another starts, by lane order and `after`, transitively.
#pragma once

#include <array>
#include <vector>

#include "common/program/program.h"

namespace motley {

class ProgramOrder {
 public:
  // Dependencies must be valid: each earlier than its instruction. O(instructions + dependencies).
  explicit ProgramOrder(const Program& program);
  // Whether `earlier` has finished when `later` starts.
  bool Before(int earlier, int later) const;

 private:
  // By lane, the last instruction known to have finished; -1 = none. Lanes run in order, so it stands for all before it.
  using Finished = std::array<int, kNumLanes>;
  std::vector<Finished> at_start_;
  std::vector<int> lane_;
};

}  // namespace motley
