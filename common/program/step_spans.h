// When the instructions of a program ran in one step, and what that makes of a rank's time.
#pragma once

#include <array>
#include <vector>

#include "absl/time/time.h"
#include "common/program/program.h"

namespace motley {

// By the lane's schedule (emulated devices) or its clock. A hand-over begins when both ends are there; a collective when this
// rank is. Both are equal for what takes no time.
struct InstructionSpan {
  absl::Duration begin, end;
  friend bool operator==(const InstructionSpan&, const InstructionSpan&) = default;
};

// A step of one rank. The compute lane's busy seconds and its waits add up to the step.
struct LaneSeconds {
  std::array<double, kNumLanes> busy{};  // by Lane
  // What the compute lane waited for:
  double collective = 0;  // gathers and reductions under way
  double hand_over = 0;   // samples on their way
  double bubble = 0;      // ranks that are not so far yet: no transfer is under way, or only the scalars are missing
  double host = 0;        // nothing: before the first instruction, between two, after the last
  double copy = 0;        // copies from or to host memory
  friend bool operator==(const LaneSeconds&, const LaneSeconds&) = default;
};

// `spans`: one for each instruction, since the step's begin; the step ends at `step`.
LaneSeconds SecondsByLane(const Program& program, const std::vector<InstructionSpan>& spans, absl::Duration step);

}  // namespace motley
