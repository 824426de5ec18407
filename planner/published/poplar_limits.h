// What Poplar's paper keeps to, beside its own batch search (poplar_algorithm2.h). As made by itself: none of it, which is the
// tuned search.
#pragma once

namespace motley::planner {

struct PoplarLimits {
  bool speeds_by_spline = false;  // through the probed batches (poplar_spline.h), not the setting's curves
  bool all_devices = false;       // every one takes part
};

constexpr PoplarLimits PublishedPoplar() { return {.speeds_by_spline = true, .all_devices = true}; }

}  // namespace motley::planner
