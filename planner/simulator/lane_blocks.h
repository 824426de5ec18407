// One lane of a timeline as blocks to draw, a bounded number of them however many tasks there are. Pure, deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/simulator/step_graph.h"

namespace motley::planner {

struct LaneBlock {
  double begin = 0, end = 0;  // pixels
  TaskKind kind = TaskKind::kForward;
  int32_t task = -1;  // the block is this task alone; -1: it stands for several
};

// `tasks` of one lane in their order; the whole timeline is `width` pixels wide. Tasks of at least half a pixel are drawn as they
// are. Narrower ones share cells of half a pixel: a cell shows the kind (or the idling) that has most time not yet shown, and
// what it could not show is carried to the next cell, so that parts of time stay true over a few cells (error diffusion). At
// most 4 blocks a pixel.
std::vector<LaneBlock> BlocksOfLane(const StepGraph& graph, const Timeline& timeline, const std::vector<int32_t>& tasks,
                                    double width);

}  // namespace motley::planner
