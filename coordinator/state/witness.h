// Who could say that another machine has taken the cluster over: a member, by the certificate that it keeps. A worker of this
// machine's own socket keeps none. Pure functions of the state.
#pragma once

#include <string>

#include "coordinator/state/cluster.h"

namespace motley::coordinator {

// Why no generation may begin now: members look for the coordinator at several addresses, so another may be it, and none of them
// is here. Empty: one may.
std::string WhyNoWitness(const ClusterState& state);

}  // namespace motley::coordinator
