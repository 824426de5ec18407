// Where a pipeline's units of the model are: groups of ranks, borders between ranks. Part of the program writer.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/step_lowering_view.h"
#include "planner/setting/setting.h"

namespace motley::planner {

// A unit of the model where a microbatch enters or leaves the ranks of a stage.
struct PipelineBorder {
  int element = -1;  // of the pipeline, on the other side; -1 = no border
  int32_t unit = 0;  // the first unit behind the border
};

struct PipelinePlaces {
  // By stage; then the ranks of a tied embedding's two ends, where they are on two stages. Members by node, so that one hop of a
  // ring enters a node and one leaves it.
  std::vector<std::vector<int32_t>> groups;
  int32_t tied_group = -1;
  std::vector<PipelineBorder> forward_borders, backward_borders;  // by unit: what it makes in the pass goes there
};

// Of the plan's one pipeline of single-device units.
PipelinePlaces PlacesOf(const Setting& setting, const PlanView& view);

}  // namespace motley::planner
