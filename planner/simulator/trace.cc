#include "planner/simulator/trace.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace motley::planner {
namespace {

// A text in quotes. Bytes that are not UTF-8 are replaced: a trace must open whatever a device is called.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Written as text: a large cluster's step has a hundred thousand events.
class TraceWriter {
 public:
  void Process(size_t process, const std::string& name) {
    Name("process_name", process, 0, name);
    absl::StrAppend(&events_, R"({"name":"process_sort_index","ph":"M","pid":)", process, R"(,"args":{"sort_index":)", process,
                    "}},\n");
  }
  void Thread(size_t process, int thread, const std::string& name) { Name("thread_name", process, thread, name); }
  // `index`: of the task or instruction.
  void Span(size_t process, int thread, const std::string& name, std::string_view category, double begin_seconds,
            double end_seconds, const char* index_name, size_t index) {
    if (end_seconds <= begin_seconds) return;
    absl::StrAppend(&events_, R"({"name":")", name, R"(","cat":")", std::string(category), R"(","ph":"X","pid":)", process,
                    R"(,"tid":)", thread, R"(,"ts":)");
    AppendMicroseconds(begin_seconds);
    events_ += R"(,"dur":)";
    AppendMicroseconds(end_seconds - begin_seconds);
    absl::StrAppend(&events_, R"(,"args":{")", index_name, "\":", index, "}},\n");
  }
  std::string Finish() && {
    if (!events_.empty()) events_.resize(events_.size() - 2);  // the last comma
    return absl::StrCat("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", events_, "\n]}\n");
  }

 private:
  // With three digits: nanoseconds.
  void AppendMicroseconds(double seconds) {
    const auto ns = std::llround(seconds * 1e9);
    absl::StrAppend(&events_, ns / 1000, ".", absl::Dec(ns % 1000, absl::kZeroPad3));
  }
  void Name(const char* what, size_t process, int thread, const std::string& name) {
    absl::StrAppend(&events_, R"({"name":")", what, R"(","ph":"M","pid":)", process, R"(,"tid":)", thread, R"(,"args":{"name":)",
                    Quoted(name), "}},\n");
  }
  std::string events_;
};

// "forward 3.1": operation, unit, microbatch.
std::string SpanName(const Operation& op) {
  const std::string name(OperationName(op));
  return std::visit(
      [&name](const auto& o) -> std::string {
        if constexpr (requires { o.microbatch; }) {
          return absl::StrCat(name, " ", o.unit, ".", o.microbatch);
        } else if constexpr (requires { o.unit; }) {
          return absl::StrCat(name, " ", o.unit);
        } else {
          return name;
        }
      },
      op);
}

}  // namespace

std::string TraceJson(const StepGraph& graph, const Timeline& timeline) {
  TraceWriter writer;
  std::vector<bool> lane_used(graph.actors.size() * kLanesPerActor, false);
  for (const Task& task : graph.tasks) {
    for (const int32_t lane : task.lanes) lane_used[static_cast<size_t>(lane)] = true;
  }
  for (size_t a = 0; a < graph.actors.size(); ++a) {
    const Actor& actor = graph.actors[a];
    writer.Process(a, absl::StrCat("pipeline ", actor.pipeline, " stage ", actor.stage, " ", actor.name));
    for (int lane = 0; lane < kLanesPerActor; ++lane) {
      if (!lane_used[a * kLanesPerActor + static_cast<size_t>(lane)]) continue;
      writer.Thread(a, lane, std::string(LaneName(static_cast<LaneKind>(lane))));
    }
  }
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    const TaskSpan& span = timeline.spans[t];
    if (span.end == span.begin) continue;
    const std::string label = TaskLabel(graph.tasks[t]);
    for (const int32_t lane : graph.tasks[t].lanes) {
      writer.Span(static_cast<size_t>(lane / kLanesPerActor), lane % kLanesPerActor, label, TaskName(graph.tasks[t].kind),
                  ToSeconds(span.begin), ToSeconds(span.end), "task", t);
    }
  }
  return std::move(writer).Finish();
}

std::string TraceJson(const std::vector<DeviceId>& devices, const std::vector<Program>& programs, const Simulation& simulation) {
  TraceWriter writer;
  for (size_t r = 0; r < programs.size(); ++r) {
    writer.Process(r, absl::StrCat("rank ", r, " ", devices[r].value()));
    writer.Thread(r, static_cast<int>(Lane::kCompute), "compute");
    writer.Thread(r, static_cast<int>(Lane::kCollective), "collective");
    for (size_t i = 0; i < programs[r].instructions.size(); ++i) {
      const Operation& op = programs[r].instructions[i].op;
      const SimulatedSpan& span = simulation.ranks[r].spans[i];
      writer.Span(r, static_cast<int>(LaneOf(op)), SpanName(op), OperationName(op), span.begin_seconds, span.end_seconds,
                  "instruction", i);
    }
  }
  return std::move(writer).Finish();
}

}  // namespace motley::planner
