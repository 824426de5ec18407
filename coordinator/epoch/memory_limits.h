// What a device of a job turned out to have of memory, when a rank on it ran out: the next plan counts on no more.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/core/core.h"

namespace motley::coordinator {

// So often a device's limit is corrected for a job. The next time the job ends.
inline constexpr int kMostMemoryCorrections = 3;

// The limit after `before` (0: there was none), for a device that held `held` bytes when an allocation failed and that the plan
// fills to `peak`. What was held was there; what was asked for besides, nobody knows. A device that held more than the plan's
// peak needs as many times more than plans say, so it gets as many times less. At least 5 % below `before`; 0: not known.
int64_t CorrectedLimit(int64_t before, int64_t held, int64_t peak);

// "1.5 GiB: parameters 512.0 MiB, workspace 1.0 GiB": what a rank's peak is for.
std::string PurposesText(const planner::MemoryByPurpose& memory);

// A rank of the epoch that runs says that it ran out of memory. The device's limit is corrected in its profile, so that later
// plans have it, those of other coordinators on this store too; an event says how. Where that was done kMostMemoryCorrections
// times, the job ends with its next planning (JobRun::memory_end).
void OnOutOfMemory(Core& core, const RankRun& rank, const RankReport& report);

}  // namespace motley::coordinator
