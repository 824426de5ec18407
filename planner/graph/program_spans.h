// A step of all ranks by instruction, simulated or measured, and as tasks of the programs' graph.
#pragma once

#include <cstdint>
#include <vector>

#include "common/program/step_spans.h"
#include "planner/simulator/step_graph.h"

namespace motley::planner {

using RankSpans = std::vector<std::vector<InstructionSpan>>;  // by rank and instruction

// As each rank would measure the simulated step: a collective begins when the rank is ready for it. `task_of`: of the programs'
// graph (program_graph.h), of which `timeline` is.
RankSpans SpansByRank(const std::vector<Program>& programs, const std::vector<std::vector<int32_t>>& task_of,
                      const Timeline& timeline);

// The other way: a task begins with its last rank and ends with the last, too. Its spans are on one clock.
Timeline TimelineOf(const RankSpans& spans, const std::vector<std::vector<int32_t>>& task_of, const StepGraph& graph);

}  // namespace motley::planner
