// That the slots of a rank's program have room for what comes into them: what Validate (common/program) cannot know, since a
// program does not say how large an input is. Knows no torch.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/job/job.h"
#include "common/program/program.h"
#include "common/session/assignment.h"

namespace motley::engine {

// Of one sample's input of a layer or the head.
int64_t InputBytesOfASample(const RankAssignment& assignment, Precision precision);

// `program`: one of the assignment's that passes Validate and RunsInEngine. FAILED_PRECONDITION names rank, instruction, slot and
// bytes.
absl::Status CheckSlots(const RankAssignment& assignment, Precision precision, const Program& program);

}  // namespace motley::engine
