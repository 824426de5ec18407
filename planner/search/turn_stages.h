// Pipelines that run forward and backward in turn (1F1B, zero bubble) over given groups, made quickly: tens of thousands of stage
// costs a millisecond where an exact split of one group takes that long. The estimator then says which of many are worth more.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/program/offload_kinds.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct TurnChoice {
  std::vector<std::vector<int>> groups;  // devices of each stage, in pipeline order
  std::vector<int> tp;                   // by group: ranks of a unit, of like devices of one node; a rest makes smaller units
  int64_t rounds = 8;                    // microbatches that the batch is cut into
  double in_flight_factor = 1;           // times the schedule's own number in flight (in_flight.h)
  // No other stage waits for a single one's gradients: its backward is never split, whatever two halves were measured to take.
  ScheduleFamily schedule = ScheduleFamily::k1F1B;
  int zero_stage = 1;    // inside the groups
  OffloadKinds offload;  // optimizer, wherever a node offers some
};

// By stage: what the choice's factor comes to, and all that it decides.
std::vector<int64_t> InFlightOf(const TurnChoice& choice);

// Inside a group units take samples in proportion to their speed, all in `rounds` microbatches. Layers go one by one to the stage
// that ends first with one more (exact for the slowest stage, whose times never fall in its layers). On every rank the first
// operators of its ladder (plan_moves.h) are recomputed until it fits; shards are even where that fits, else by free memory.
// RESOURCE_EXHAUSTED: some layer fits nowhere.
absl::StatusOr<Plan> PlanTurns(const Setting& setting, const TurnChoice& choice);

}  // namespace motley::planner
