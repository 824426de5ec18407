// A simulated step as Chrome trace JSON (Perfetto, chrome://tracing), in microseconds. Tasks that take no time are left out.
#pragma once

#include <string>
#include <vector>

#include "planner/simulator/step_graph.h"

namespace motley::planner {

// Of any plan: a process per actor, or per tensor-parallel unit, and a thread per lane; a task on several lanes is drawn on each.
// `timeline` is of `graph`.
std::string TraceJson(const StepGraph& graph, const Timeline& timeline);

// Several of one graph, a process's one below the other; `name` ("measured") stands before the process's.
struct NamedTimeline {
  std::string name;
  const Timeline* timeline = nullptr;
};
std::string TraceJson(const StepGraph& graph, const std::vector<NamedTimeline>& timelines);

}  // namespace motley::planner
