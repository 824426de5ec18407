// Part of Validate (program.h): what must hold before the instructions can be walked.
#pragma once

#include "absl/status/status.h"
#include "common/program/program.h"

namespace motley {

// Version, ranks, units, groups, microbatches, buffers, and that dependencies name earlier instructions. FAILED_PRECONDITION
// names the rank and the rule.
absl::Status ValidateHeader(const Program& program);

}  // namespace motley
