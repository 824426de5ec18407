// What ranks must agree on in what they do together: collectives, computing as a tensor-parallel group, and hand-overs. Part of
// the walk over all ranks' programs (program_walk.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/program/program.h"

namespace motley::planner {

// What all ranks of a group must mean by an instruction. Group -1 = all ranks, unit -1 = none.
struct Together {
  int32_t group = -1, unit = -1, more_units = 0;
  int64_t elements = 0;  // of a range of the array; where it begins the ranks' slices say
  int32_t root = -1;
  UnitSegment segment = UnitSegment::kWhole;
  Exchanged of = Exchanged::kActivation;
  int64_t first_sample = 0, end_sample = 0;
  int32_t more_microbatches = 0;
  friend bool operator==(const Together&, const Together&) = default;
};
// Nothing: the rank needs no others for it, or one other (HandOverOf).
std::optional<Together> TogetherOf(const Program& program, const Operation& op);

// Whether there is anything, without saying what.
bool IsTogether(const Operation& op);

// What both ends of a hand-over must mean.
struct HandOver {
  int32_t peer = 0, unit = 0, first = 0, samples = 0;
  bool gradient = false;
  bool Matches(const HandOver& other) const {
    return unit == other.unit && first == other.first && samples == other.samples && gradient == other.gradient;
  }
};
std::optional<HandOver> HandOverOf(const Operation& op);

// "instruction 3 (gather unit 2)"
std::string DescribeInstruction(const Program& program, int32_t index);

}  // namespace motley::planner
