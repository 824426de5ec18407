// What Zorse's paper keeps to and gives no reason for. As made by itself: none of it, which is the tuned search.
#pragma once

namespace motley::planner {

struct ZorseLimits {
  bool powers_of_two = false;       // microbatch sizes
  bool whole_microbatches = false;  // a device computes a number of equal ones
  bool equal_ministages = false;    // of as many layers each, all over the pipeline
  bool layers_by_speed = false;     // alone: memory does not move them
  bool even_shares = false;         // of a group's state
  bool offload_together = false;    // parameters and activations, or neither
  bool order_by_bandwidth = false;  // of the groups, and no other
  bool closed_form = false;         // no group is split again by the exact solver
};

// Section 3.3: one power of two for every group, memory checked at the end.
constexpr ZorseLimits PublishedZorse() {
  return {.powers_of_two = true,
          .whole_microbatches = true,
          .equal_ministages = true,
          .layers_by_speed = true,
          .even_shares = true,
          .offload_together = true,
          .order_by_bandwidth = true,
          .closed_form = true};
}

}  // namespace motley::planner
