// How often a thread did what a price needs once. Tests hold one price to one of each; nothing else reads it.
#pragma once

namespace motley::planner {

struct WorkCount {
  int views = 0, slices = 0, walks = 0, validations = 0;  // ViewOf, SlicesOfRanks, WalkSchedule, Validate(plan)
};

inline WorkCount& WorkOfThread() {
  thread_local WorkCount work;
  return work;
}

}  // namespace motley::planner
