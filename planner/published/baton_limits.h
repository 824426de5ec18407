// What Baton's paper keeps to. As made by itself: none of it, which is the tuned search.
#pragma once

namespace motley::planner {

struct BatonLimits {
  bool no_replicas = false;    // a stage is one unit
  bool powers_of_two = false;  // microbatch sizes
  bool one_degree = false;     // of tensor parallelism, on all nodes
  bool cluster_order = false;  // of devices: the cluster's own, with all of them
};

constexpr BatonLimits PublishedBaton() {
  return {.no_replicas = true, .powers_of_two = true, .one_degree = true, .cluster_order = true};
}

}  // namespace motley::planner
