// Whether the programs of a plan can be sent to their ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/program/program.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// A worker is told of all its ranks in one message, of which it takes 64 MiB; the programs are nearly all of it.
inline constexpr int64_t kMostProgramBytes = int64_t{60} << 20;

// `programs`: some of every rank, by rank; empty ones count for nothing. RESOURCE_EXHAUSTED names the node whose programs are
// longer together than `most_bytes`, and says what makes them shorter.
absl::Status CheckProgramSizes(const Plan& plan, const std::vector<const std::vector<Program>*>& programs,
                               int64_t most_bytes = kMostProgramBytes);

}  // namespace motley::planner
