// Which of the failures that one event sets off is the first cause, and what helps against it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/state/cluster.h"
#include "coordinator/state/run.h"

namespace motley::coordinator {

struct CauseConfig {
  // A stopped rank stalls its peers as well; the one that stalled first reports first. A death in this time outranks it.
  absl::Duration hung_wait = absl::Milliseconds(300);
  // Lost peers are a consequence: this long is waited for the death, loss or stall behind it.
  absl::Duration peer_lost_wait = absl::Seconds(2);
};

// Null while nothing failed, or only consequences did and the cause may still come. Failures are in order of arrival. Of lost
// peers alone, and of measurements that failed for them, it is the first that says more than that its peer has ended.
std::optional<Failure> FirstCause(absl::Duration now, const std::vector<Failure>& failures, const CauseConfig& config);

// "node n2 was lost: its connection broke".
std::string Describe(const Failure& failure);
// The table of errors (docs/use/errors.md).
Remedy RemedyFor(const Failure& failure);
// The job ends with this failure, unless newcomers are to blame: what repeats by itself, and what one machine refuses
// (Fault::kNode) when another one does so, too, or there is no other.
bool EndsJob(const ClusterState& state, const JobRun& run, const Failure& failure);
// How long the next epoch waits after `times` failures in a row without a step between them.
absl::Duration PauseAfter(Remedy remedy, int times);
// From a bounded set, for the metrics' label `cause`.
std::string CauseLabel(const Failure& failure);

}  // namespace motley::coordinator
