// Whether a checkpoint can still be saved before somebody has to go. Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "coordinator/state/cluster.h"

namespace motley::coordinator {

// Who was told to end and takes the running epoch with it: the coordinator, or the first node with a rank.
struct Leaving {
  std::string who;  // "node n2"
  bool node = false;
  absl::Duration left;  // until it is gone
};
std::optional<Leaving> WhoLeaves(absl::Duration now, const ClusterState& state);

// Finishing the step in which the ranks agree to stop, and writing the checkpoint. Infinite: the job keeps no checkpoints.
absl::Duration TimeToSave(absl::Duration now, const JobRun& run, const JobRecord& job);
// Done since the newest checkpoint: what is repeated when nothing is saved.
int64_t StepsAtRisk(const JobRun& run, const JobRecord& job);

}  // namespace motley::coordinator
