#include "common/program/program_order.h"

#include <algorithm>

namespace motley {

ProgramOrder::ProgramOrder(const Program& program) {
  const int count = static_cast<int>(program.instructions.size());
  at_start_.reserve(count);
  lane_.reserve(count);
  std::array<int, kNumLanes> last_of_lane;
  last_of_lane.fill(-1);
  for (int i = 0; i < count; ++i) {
    const Instruction& instruction = program.instructions[i];
    Finished finished;
    finished.fill(-1);
    const auto wait_for = [&](int j) {
      for (size_t lane = 0; lane < kNumLanes; ++lane) finished[lane] = std::max(finished[lane], at_start_[j][lane]);
      int& own = finished[lane_[j]];
      own = std::max(own, j);
    };
    const int lane = static_cast<int>(LaneOf(instruction.op));
    if (last_of_lane[lane] >= 0) wait_for(last_of_lane[lane]);
    for (const int32_t dependency : instruction.after) wait_for(dependency);
    at_start_.push_back(finished);
    lane_.push_back(lane);
    last_of_lane[lane] = i;
  }
}

bool ProgramOrder::Before(int earlier, int later) const {
  const int lane = lane_[earlier];
  return earlier <= at_start_[later][lane];
}

}  // namespace motley
