// What Megatron-LM keeps to, which takes all cards to be alike. As made by itself: none of it, which is the tuned search.
#pragma once

namespace motley::planner {

struct MegatronLimits {
  bool equal_layers = false;   // of stages and of their ministages
  bool cluster_order = false;  // of devices: the cluster's own, with all of them
};

constexpr MegatronLimits PublishedMegatron() { return {.equal_layers = true, .cluster_order = true}; }

}  // namespace motley::planner
