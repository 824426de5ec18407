// Nodes that come and go: each fall of a node costs every other node of its job a pause, so a node that falls often has to stay
// up for a growing time before it is planned with again. Pure functions of the state.
//
// A fall that more than half of the nodes share is not the node's fault (a switch, the coordinator's own network): it does not
// count. Names cost nothing: under a new one, a node has the falls of those that came from its address before, made steps with
// the job, and are gone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/state/cluster.h"

namespace motley::coordinator {

struct FlappingConfig {
  absl::Duration window = absl::Minutes(10);       // falls are remembered for
  absl::Duration first_hold = absl::Seconds(5);    // up for so long after one fall
  absl::Duration second_hold = absl::Seconds(15);  // after two
  absl::Duration third_hold = absl::Minutes(1);    // after three, which is flapping; doubles with every further one
  absl::Duration longest_hold = absl::Minutes(30);
};

// How many times `node` fell within the window by itself; for one that never fell, nodes from its address that trained with
// the job, fell before it came and are gone. This machine's own addresses are everybody's.
int Falls(absl::Duration now, const ClusterState& state, const NodeRecord& node, const FlappingConfig& config);

struct HoldDecision {
  bool held = false;
  std::string reason;  // "fell 3 times in 10 min; used again when it has been up for 60 s"
};
// Whether a connected node must wait before it is used.
HoldDecision DecideHold(absl::Duration now, const ClusterState& state, const NodeRecord& node, const FlappingConfig& config);

// What of `falls` is still remembered.
void ForgetOldFalls(absl::Duration now, const FlappingConfig& config, std::vector<absl::Duration>* falls);

}  // namespace motley::coordinator
