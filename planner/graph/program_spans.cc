#include "planner/graph/program_spans.h"

#include <algorithm>
#include <array>

namespace motley::planner {
namespace {

absl::Duration ToDuration(Picoseconds time) { return absl::Nanoseconds(static_cast<double>(time) / 1e3); }
Picoseconds ToTime(absl::Duration time) { return ToPicoseconds(absl::ToDoubleSeconds(time)); }

std::vector<InstructionSpan> SpansOf(const Program& program, const std::vector<int32_t>& task_of, const Timeline& timeline) {
  std::vector<InstructionSpan> spans;
  std::array<absl::Duration, kNumLanes> free;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const Lane lane = LaneOf(instruction.op);
    absl::Duration& at = free[static_cast<size_t>(lane)];
    for (const int32_t before : instruction.after) at = std::max(at, spans[before].end);
    InstructionSpan span{at, at};
    if (task_of[i] >= 0) {
      const TaskSpan& task = timeline.spans[task_of[i]];
      span = {lane == Lane::kCollective ? std::min(at, ToDuration(task.begin)) : ToDuration(task.begin), ToDuration(task.end)};
    }
    at = std::max(at, span.end);
    spans.push_back(span);
  }
  return spans;
}

}  // namespace

RankSpans SpansByRank(const std::vector<Program>& programs, const std::vector<std::vector<int32_t>>& task_of,
                      const Timeline& timeline) {
  RankSpans spans;
  for (size_t r = 0; r < programs.size(); ++r) spans.push_back(SpansOf(programs[r], task_of[r], timeline));
  return spans;
}

Timeline TimelineOf(const RankSpans& spans, const std::vector<std::vector<int32_t>>& task_of, const StepGraph& graph) {
  Timeline timeline;
  timeline.spans.resize(graph.tasks.size());
  timeline.busy.resize(graph.actors.size() * kNumLanes);
  for (size_t r = 0; r < spans.size(); ++r) {
    for (size_t i = 0; i < spans[r].size(); ++i) {
      if (task_of[r][i] < 0) continue;
      TaskSpan& task = timeline.spans[task_of[r][i]];
      task.begin = std::max(task.begin, ToTime(spans[r][i].begin));
      task.end = std::max(task.end, ToTime(spans[r][i].end));
    }
  }
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    TaskSpan& span = timeline.spans[t];
    span.end = std::max(span.begin, span.end);
    timeline.end = std::max(timeline.end, span.end);
    for (const int32_t lane : graph.tasks[t].lanes) timeline.busy[lane] += span.end - span.begin;
  }
  return timeline;
}

}  // namespace motley::planner
