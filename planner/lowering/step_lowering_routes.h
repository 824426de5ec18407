// Which microbatches of one stage meet which of another: those that stand for the same samples of the pipeline's batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/lowering/step_lowering_view.h"

namespace motley::planner {

// A microbatch of an actor.
struct Slot {
  int actor = 0;
  int64_t k = 0, begin = 0, end = 0;
};

// Of one pipeline. Slots of a stage are in the order of their samples and cover the batch.
class Routes {
 public:
  Routes(const PlanView& view, const PipelineView& pipeline);

  const std::vector<Slot>& SlotsOf(int stage) const { return stages_[stage - first_stage_]; }
  int SlotOf(int actor, int64_t k) const { return slot_of_[actor][k]; }
  // Slots of `to` that share samples with `slot`: [first, last).
  struct Range {
    int first = 0, last = 0;
  };
  Range Overlap(const Slot& slot, int to) const;

 private:
  int first_stage_ = 0;
  std::vector<std::vector<Slot>> stages_;
  std::vector<std::vector<int>> slot_of_;  // by actor, microbatch
};

}  // namespace motley::planner
