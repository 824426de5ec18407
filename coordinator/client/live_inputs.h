// motley plan JOB --compare and the like: what the coordinator knows of a job's cluster, as the offline planner wants it.
#pragma once

#include <string>

#include "coordinator/client/offline_flags.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::client {

// Flags that the job does not answer itself (batch, sequence, dtype) replace its own; --profiles come on top. Where `folder` is
// not empty, cluster.toml, config.json and profiles.json are written there first, and the command that plans with them is said on
// standard error. Exit 64: a flag is wrong; 65: the job's devices were not measured yet; 66: no such job; 69: no coordinator; 73:
// the folder cannot be written.
Exit LoadLive(Context& context, const std::string& job, const OfflineFlags& flags, const std::string& folder,
              OfflineInput* input);

// The setting that a job's plan was made on, from the texts that came with it. Exit 65: they are of another version.
Exit LoadInputs(const std::string& job, const v1::GetPlanningInputsResponse& inputs, OfflineInput* input);

}  // namespace motley::client
