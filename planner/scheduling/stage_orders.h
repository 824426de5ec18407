// The orders of a pipeline's stages: their places in it, and how orders are mended in which ranks of unlike microbatches would
// wait for each other. Whoever walks through a schedule, in its own time or in seconds, says who was stuck.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/family_order.h"
#include "planner/plan/schedule_walk.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

std::vector<StagePlace> StagePlaces(const PlanView& view, const PipelineView& pipeline);

// Lets forwards run ahead where they must, no further: of the stages whose next forward could be computed while all wait, the one
// nearest to the loss keeps one more in flight. A fixed order has no limit to raise. With all forwards first (GPipe's order)
// nobody waits; with several virtual stages a stage their order can be what ranks of unlike microbatches cannot keep, and then
// all pass one before the next.
class OrderMender {
 public:
  OrderMender(ScheduleFamily family, std::vector<StagePlace> places);
  const std::vector<std::vector<Action>>& orders() const { return orders_; }  // by stage; at first the family's own
  bool by_virtual_stage() const { return by_virtual_stage_; }                 // all rounds pass one before the next
  // Other orders to try after a walk in which some were stuck, from the start. False: there are none.
  bool Mend(const std::vector<ForwardAhead>& could_run_ahead);

 private:
  const ScheduleFamily family_;
  std::vector<StagePlace> places_;
  std::vector<std::vector<Action>> orders_;
  int64_t tries_ = 0;
  bool by_virtual_stage_ = false;
};

}  // namespace motley::planner
