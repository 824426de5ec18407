// Which job gets the cluster; what a queued job waits for, since when, and how long that may take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/state/cluster.h"

namespace motley::coordinator {

// Submitted or resumed first.
bool IsOlder(const JobRecord& a, const JobRecord& b);
// Whether `a` gets the cluster before `b`: a job that had ranks before a restart keeps it, then the older one.
bool ComesBefore(const JobRecord& a, const JobRecord& b);

// A sentence with times, for whoever asks now; empty when the job does not wait for another one. The reason that is kept and
// published has no times: it would change all the while.
std::string QueueSentence(int64_t now_unix_ms, const ClusterState& state, const JobRecord& job);

// Without times.
std::string WaitsForSentence(const JobRecord& holder);

struct QueueDecision {
  std::optional<JobId> activate;                       // gets the cluster now
  std::vector<JobId> stopped;                          // ended by the user before they began, or while they were put aside
  std::vector<std::pair<JobId, std::string>> waiting;  // the others, with the reason
};
QueueDecision DecideQueue(const ClusterState& state);

}  // namespace motley::coordinator
