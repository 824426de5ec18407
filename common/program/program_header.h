// Part of Validate (program.h): what must hold before the instructions can be walked.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/program/program.h"

namespace motley {

// What to say of a program of another version than this build's: who should be updated.
std::string UnknownVersion(int32_t version);

// Version, ranks, units, groups, microbatches, buffers, and that dependencies name earlier instructions. FAILED_PRECONDITION
// names the rank and the rule.
absl::Status ValidateHeader(const Program& program);

}  // namespace motley
