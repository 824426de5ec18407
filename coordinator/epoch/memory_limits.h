// What a device of a job, or its host, turned out to have of memory, when a rank on it ran out: the next plan counts on no more.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/session/profile.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// So often the limit of a device, or of a host, is corrected for a job. The next time the job ends.
inline constexpr int kMostMemoryCorrections = 3;

// What the store has of the device for the job's model, sequence and type, with the device's name. NOT_FOUND: nobody measured it.
absl::StatusOr<ComputeProfile> StoredProfile(const Core& core, const JobConfig& config, const DeviceDescription& device);

// Under which that is kept.
absl::StatusOr<std::string> ProfileDigestOf(const JobConfig& config, const DeviceDescription& device);
// The profile takes the place of what the store has under its digest; with its event, and people see it.
absl::Status CommitProfile(Core& core, const JobConfig& config, ComputeProfile profile, EventRecord event);

// "1.5 GiB: parameters 512.0 MiB, workspace 1.0 GiB": what a rank's peak is for.
std::string PurposesText(const planner::MemoryByPurpose& memory);

// A rank of the epoch that runs says that it ran out of memory. The device's limit is corrected in its profile, so that later
// plans have it, those of other coordinators on this store too; an event says how. Of a host it is what the node offers, until
// its worker says anew. Where that was done kMostMemoryCorrections times, the job ends with its next planning
// (JobRun::memory_end).
void OnOutOfMemory(Core& core, const RankRun& rank, const RankReport& report);

}  // namespace motley::coordinator
