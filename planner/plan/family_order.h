// The order in which one stage computes, by family of schedules: pure functions of a stage's place and sizes. They assume that
// the stages' microbatches line up; make_schedule.h mends orders whose ranks would wait for each other.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/schedule.h"
#include "planner/plan/schedule_family.h"

namespace motley::planner {

struct StagePlace {
  int64_t index = 0, num_stages = 1;    // of the pipeline
  std::vector<int32_t> virtual_stages;  // that the stage computes, in the order of the pass
  int64_t rounds = 0;
  // Forwards without their backward (a virtual stage's of a microbatch is one) that come before the next backward; no fewer than
  // the first backward needs.
  int64_t limit = 0;
  bool operator==(const StagePlace&) const = default;
};

// Training: every virtual stage's forward and backward of every round, once each.
std::vector<Action> FamilyOrder(ScheduleFamily family, const StagePlace& place);

// What any stages can follow, whatever their microbatches: all rounds pass a virtual stage before the next, forward, then
// backward.
std::vector<Action> OrderByVirtualStage(ScheduleFamily family, const StagePlace& place);

// The validation pass: forward only, all rounds of a virtual stage together.
std::vector<Action> ForwardOrder(const StagePlace& place);

}  // namespace motley::planner
