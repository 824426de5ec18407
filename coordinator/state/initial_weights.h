// The weights that a job begins with, as its nodes see them: until it has a checkpoint of its own, nodes that hold other ones
// than the rest are not used. Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/job/job_input.h"
#include "common/session/session.h"
#include "coordinator/state/job.h"

namespace motley::coordinator {

// checkpoint.initial, as long as ranks may read it; empty: the job begins from its seed, or has a checkpoint.
std::string InitialFolder(const JobRecord& job);

// What was sent for the job and it may read still.
std::vector<JobInput> InputsNow(const JobRecord& job);

// The folder's contents with which all others are compared; no digest: it holds checkpoints, which nodes do not digest.
struct WeightsReference {
  std::string digest;
  std::string where;  // they are, for people
};
// What the job began with; before that, what most of these hold, and of two kinds with as many the one of the first.
WeightsReference ReferenceOfWeights(const JobRecord& job, const std::vector<std::pair<NodeName, std::string>>& digests);
// What is wrong with a node's; empty: nothing, or nobody reads them any more.
std::string WeightsComplaint(const JobRecord& job, const WeightsReference& reference, const StorageReport& report);

}  // namespace motley::coordinator
