#include "planner/simulator/trace.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/simulator/trace_writer.h"

namespace motley::planner {
namespace {

// Where an actor is drawn.
struct Row {
  size_t process = 0;
  int first_thread = 0;
};

// The actors of a tensor-parallel unit are in one process, any other has its own.
std::vector<Row> RowsOf(const StepGraph& graph) {
  std::vector<Row> rows;
  for (size_t a = 0; a < graph.actors.size(); ++a) {
    const std::string& unit = graph.actors[a].unit;
    if (a == 0) {
      rows.push_back({});
    } else if (!unit.empty() && unit == graph.actors[a - 1].unit) {
      rows.push_back({rows.back().process, rows.back().first_thread + kNumLanes});
    } else {
      rows.push_back({rows.back().process + 1, 0});
    }
  }
  return rows;
}

std::string ProcessName(const std::string& timeline, const Actor& actor) {
  return absl::StrCat(timeline, timeline.empty() ? "" : ": ", "pipeline ", actor.pipeline, " stage ", actor.stage, " ",
                      actor.unit.empty() ? actor.name : absl::StrCat("unit ", actor.unit));
}

std::string ThreadName(const Actor& actor, int lane) {
  return absl::StrCat(actor.unit.empty() ? "" : absl::StrCat(actor.name, " "), std::string(LaneName(static_cast<Lane>(lane))));
}

void NameRows(const StepGraph& graph, const std::vector<NamedTimeline>& timelines, const std::vector<Row>& rows,
              TraceWriter* writer) {
  std::vector<bool> lane_used(graph.actors.size() * kNumLanes, false);
  for (const Task& task : graph.tasks) {
    for (const int32_t lane : task.lanes) lane_used[lane] = true;
  }
  for (size_t a = 0; a < graph.actors.size(); ++a) {
    for (size_t i = 0; i < timelines.size(); ++i) {
      const size_t process = rows[a].process * timelines.size() + i;
      if (rows[a].first_thread == 0) writer->Process(process, ProcessName(timelines[i].name, graph.actors[a]));
      for (int lane = 0; lane < kNumLanes; ++lane) {
        if (!lane_used[a * kNumLanes + static_cast<size_t>(lane)]) continue;
        writer->Thread(process, rows[a].first_thread + lane, ThreadName(graph.actors[a], lane));
      }
    }
  }
}

}  // namespace

std::string TraceJson(const StepGraph& graph, const Timeline& timeline) {
  return TraceJson(graph, std::vector<NamedTimeline>{{"", &timeline}});
}

std::string TraceJson(const StepGraph& graph, const std::vector<NamedTimeline>& timelines) {
  TraceWriter writer;
  const std::vector<Row> rows = RowsOf(graph);
  NameRows(graph, timelines, rows, &writer);
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    const std::string label = TaskLabel(graph.tasks[t]);
    for (size_t i = 0; i < timelines.size(); ++i) {
      const TaskSpan& span = timelines[i].timeline->spans[t];
      for (const int32_t lane : graph.tasks[t].lanes) {
        const Row& row = rows[static_cast<size_t>(lane / kNumLanes)];
        writer.Span(row.process * timelines.size() + i, row.first_thread + lane % kNumLanes, label, TaskName(graph.tasks[t].kind),
                    ToSeconds(span.begin), ToSeconds(span.end), "task", t);
      }
    }
  }
  return std::move(writer).Finish();
}

}  // namespace motley::planner
