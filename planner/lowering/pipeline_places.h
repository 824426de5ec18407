// The groups of a pipeline's ranks that meet in collectives. Part of the program writer.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/step_lowering_view.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct PipelinePlaces {
  // By stage; then the ranks of a tied embedding's two ends, where they are on two stages. Members by node, so that one hop of a
  // ring enters a node and one leaves it.
  std::vector<std::vector<int32_t>> groups;
  int32_t tied_group = -1;
};

// Of the plan's one pipeline of single-device units.
PipelinePlaces PlacesOf(const Setting& setting, const PlanView& view);

}  // namespace motley::planner
