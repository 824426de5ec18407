// A simulated step as an SVG: a row per lane of every actor, the actors of a tensor-parallel unit under its name, colours by kind
// of task, idling as the light ground between.
// Pure and deterministic.
#pragma once

#include <string>

#include "planner/simulator/step_graph.h"

namespace motley::planner {

struct PictureOptions {
  std::string title;     // before the step's seconds: "zorse, llama-7b on cephalo-a"
  int width = 1280;      // pixels
  int most_actors = 48;  // more are cut, of every stage some, and the picture says how many
};

// `timeline` is of `graph`. The size is bounded by width and actors, whatever the number of tasks.
std::string SvgTimeline(const StepGraph& graph, const Timeline& timeline, const PictureOptions& options = {});

}  // namespace motley::planner
