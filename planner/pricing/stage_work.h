// A stage's work as the estimator follows it: pieces of its layers.
#pragma once

#include <vector>

#include "planner/view/part.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// A piece of a stage that is followed as one: a ministage; or one unit of the model where each is gathered on its own and all
// microbatches pass it in turn.
struct Chunk {
  Part part;
  int element = 0;                   // of the pipeline
  bool first = false, last = false;  // of the element
};

struct StageWork {
  bool gathers = false;       // layered: chunks come in turn, once forward and once backward, into two buffers
  std::vector<Chunk> chunks;  // forward order
  // A tied embedding that stays gathered for the head of the same stage.
  bool keeps_embedding = false;
};
// `stage`: into view.stages.
StageWork WorkOf(const PlanView& view, int stage, bool tied);

}  // namespace motley::planner
