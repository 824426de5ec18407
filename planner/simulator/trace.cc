#include "planner/simulator/trace.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/simulator/trace_writer.h"

namespace motley::planner {

std::string TraceJson(const StepGraph& graph, const Timeline& timeline) {
  return TraceJson(graph, std::vector<NamedTimeline>{{"", &timeline}});
}

std::string TraceJson(const StepGraph& graph, const std::vector<NamedTimeline>& timelines) {
  TraceWriter writer;
  std::vector<bool> lane_used(graph.actors.size() * kNumLanes, false);
  for (const Task& task : graph.tasks) {
    for (const int32_t lane : task.lanes) lane_used[lane] = true;
  }
  const size_t count = timelines.size();
  for (size_t a = 0; a < graph.actors.size(); ++a) {
    const Actor& actor = graph.actors[a];
    const std::string name = absl::StrCat("pipeline ", actor.pipeline, " stage ", actor.stage, " ", actor.name);
    for (size_t i = 0; i < count; ++i) {
      writer.Process(a * count + i, timelines[i].name.empty() ? name : absl::StrCat(timelines[i].name, ": ", name));
      for (int lane = 0; lane < kNumLanes; ++lane) {
        if (!lane_used[a * kNumLanes + static_cast<size_t>(lane)]) continue;
        writer.Thread(a * count + i, lane, std::string(LaneName(static_cast<Lane>(lane))));
      }
    }
  }
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    const std::string label = TaskLabel(graph.tasks[t]);
    for (size_t i = 0; i < count; ++i) {
      const TaskSpan& span = timelines[i].timeline->spans[t];
      for (const int32_t lane : graph.tasks[t].lanes) {
        writer.Span(static_cast<size_t>(lane / kNumLanes) * count + i, lane % kNumLanes, label, TaskName(graph.tasks[t].kind),
                    ToSeconds(span.begin), ToSeconds(span.end), "task", t);
      }
    }
  }
  return std::move(writer).Finish();
}

}  // namespace motley::planner
