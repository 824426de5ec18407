// A transfer's seconds as a line in its bytes: what estimates keep of a flow, since they ask for many sizes.
#pragma once

#include <algorithm>

#include "planner/cluster/links.h"

namespace motley::planner {

struct TransferLine {
  double latency_seconds = 0, seconds_per_byte = 0;
  double At(double bytes) const { return bytes > 0 ? latency_seconds + bytes * seconds_per_byte : 0; }
};

// `flow`: of `bytes` (> 0), alone on its links.
inline TransferLine LineOf(const Links& links, const Flow& flow, double bytes) {
  return {flow.latency_seconds, (links.SecondsAlone(flow) - flow.latency_seconds) / bytes};
}

// At least as slow as both at any size.
inline TransferLine Slower(const TransferLine& a, const TransferLine& b) {
  return {std::max(a.latency_seconds, b.latency_seconds), std::max(a.seconds_per_byte, b.seconds_per_byte)};
}

}  // namespace motley::planner
