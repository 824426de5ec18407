// What NCCL takes of a rank's card for the communicators that its programs need, as the engine makes them
// (worker/engine/transport/nccl_mesh): one for each of their groups that the rank is in, whether or not another has the same
// members, and one for each direction with each rank that it hands over to or receives from. Where a member has no NCCL all of it
// goes by TCP and takes nothing. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/program/program.h"
#include "planner/cluster/cluster.h"

namespace motley::planner {

// NCCL's kernels are in it. `devices`: of the cluster, by rank. `evaluation` has the groups of `training`; it may be empty.
int64_t NcclBytes(const Cluster& cluster, const std::vector<int>& devices, const Program& training, const Program& evaluation);

}  // namespace motley::planner
