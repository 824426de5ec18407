// The order in which every actor wants to compute, by schedule. The lowering follows it as far as the data allows.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/step_lowering_seconds.h"
#include "planner/lowering/step_lowering_view.h"
#include "planner/plan/schedule.h"

namespace motley::planner {

// How a stage comes by its parameters.
enum class Residency {
  kResident,       // they stay
  kInTurn,         // layered: a unit at a time, once forward and once backward, two buffers
  kPerMicrobatch,  // gathered (or fetched) for every microbatch
};

// A piece of a stage that is scheduled as one: a ministage; or one unit of the model where each is gathered on its own and all
// microbatches pass it in turn.
struct Chunk {
  Part part;
  int element = 0;                   // of the pipeline
  bool first = false, last = false;  // of the element
};

struct StageWork {
  Residency residency = Residency::kResident;
  std::vector<Chunk> chunks;  // forward order
  // A tied embedding that stays gathered for the head of the same stage.
  bool keeps_embedding = false;
};
// `stage`: into view.stages.
StageWork WorkOf(const PlanView& view, int stage, bool tied);

// Microbatches [first, last) of one chunk.
struct StepOp {
  int chunk = 0;
  int64_t first = 0, last = 0;
};

// One of an actor's operations, by its place in the pass. Weights: of the backward that they belong to.
struct StepTurn {
  ActionKind kind = ActionKind::kForward;
  size_t position = 0;
};

struct ActorOrder {
  std::vector<StepOp> forward, backward;
  // Where the family's order is fixed: what comes when. Else empty, and `limit` and `weight_delay` say it.
  std::vector<StepTurn> turns;
  // After so many forwards without their backward, a backward comes next (if the data allow).
  int64_t limit = 0;
  // Where the backward is split: the weights' gradient follows so many backwards later.
  int64_t weight_delay = 0;
};
ActorOrder OrderOf(const PlanView& view, int actor, const StageWork& work);

}  // namespace motley::planner
