// A stage's work as the estimator follows it: pieces of its layers, and how it comes by their parameters.
#pragma once

#include <vector>

#include "planner/view/part.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// How a stage comes by its parameters.
enum class Residency {
  kResident,       // they stay
  kInTurn,         // layered: a unit at a time, once forward and once backward, two buffers
  kPerMicrobatch,  // gathered (or fetched) for every microbatch
};

// A piece of a stage that is followed as one: a ministage; or one unit of the model where each is gathered on its own and all
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

}  // namespace motley::planner
