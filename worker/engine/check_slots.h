// That a rank's programs fit what waits in its host's memory: what Validate (common/program) cannot know, since a program does
// not say how large an input is, what the rank owns, nor what the job asks for. Knows no torch.
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

// That both programs leave the parameters in the same place, and that units are stepped in turn only where nothing global decides
// a step. Both pass Validate. FAILED_PRECONDITION names the rank and what to change.
absl::Status CheckOffloads(const RankAssignment& assignment, Precision precision);

}  // namespace motley::engine
