// That a rank's program fits what it computes with: what Validate (common/program) cannot know, since a program does not say the
// rank's slice. Knows no torch.
#pragma once

#include "absl/status/status.h"
#include "common/program/program.h"
#include "common/session/assignment.h"

namespace motley::engine {

// `program`: one of the assignment's that passes Validate. FAILED_PRECONDITION names rank, instruction and what does not fit:
// - of a slice that is not the whole model every unit is summed, layers and the head's loss run in segments, and the rank
//   that has the first slice is the first of its group, which hands over;
// - of the whole model nothing is summed or broadcast;
// - a gather or reduction has an owner in its group for each of its elements, and the rank owns what it has.
absl::Status CheckSlice(const RankAssignment& assignment, const Program& program);

}  // namespace motley::engine
