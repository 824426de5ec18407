// A simulated step as Chrome trace JSON (Perfetto, chrome://tracing), in microseconds. Tasks that take no time are left out.
#pragma once

#include <string>

#include "planner/simulator/step_graph.h"

namespace motley::planner {

// Of any plan: a process per actor, a thread per lane; a task on several lanes is drawn on each. `timeline` is of `graph`.
std::string TraceJson(const StepGraph& graph, const Timeline& timeline);

}  // namespace motley::planner
