// From measured collectives to the numbers of a cluster file: how much longer than nominal a transfer takes, and the latency of a
// hop. Two numbers for all links: one ring through all devices was measured, which cannot tell its links apart.
#pragma once

#include "common/session/profile.h"
#include "planner/cluster/cluster.h"

namespace motley::planner {

struct LinkFit {
  double slowdown = 1;         // seconds that bytes take / seconds at the cluster's nominal rates
  double latency_seconds = 0;  // of a hop
  double error = 0;            // root mean square of (fitted / measured - 1) at the largest arrays; small ones are mostly noise
};

// Least squares of relative errors over all points of `measured`, both collectives: seconds = (n - 1) latency + slowdown x
// nominal. `nominal`'s devices are those that were measured, in ring order; its collective_efficiency counts as 1.
// INVALID_ARGUMENT: fewer than two devices, no points, or a point that is not positive and finite.
absl::StatusOr<LinkFit> FitLinks(const Cluster& nominal, const CollectiveProfile& measured);

}  // namespace motley::planner
