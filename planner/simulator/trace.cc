#include "planner/simulator/trace.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace motley::planner {
namespace {

using Json = nlohmann::ordered_json;

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

Json NameEvent(const char* what, size_t rank, int lane, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", lane}, {"args", {{"name", name}}}};
}

}  // namespace

std::string TraceJson(const std::vector<DeviceId>& devices, const std::vector<Program>& programs, const Simulation& simulation) {
  Json events = Json::array();
  for (size_t r = 0; r < programs.size(); ++r) {
    events.push_back(NameEvent("process_name", r, 0, absl::StrCat("rank ", r, " ", devices[r].value())));
    events.push_back(NameEvent("thread_name", r, 0, "compute"));
    events.push_back(NameEvent("thread_name", r, 1, "collective"));
    for (size_t i = 0; i < programs[r].instructions.size(); ++i) {
      const Operation& op = programs[r].instructions[i].op;
      const SimulatedSpan& span = simulation.ranks[r].spans[i];
      if (span.end_seconds <= span.begin_seconds) continue;
      events.push_back({{"name", SpanName(op)},
                        {"cat", std::string(OperationName(op))},
                        {"ph", "X"},
                        {"pid", r},
                        {"tid", static_cast<int>(LaneOf(op))},
                        {"ts", span.begin_seconds * 1e6},
                        {"dur", (span.end_seconds - span.begin_seconds) * 1e6},
                        {"args", {{"instruction", i}}}});
    }
  }
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump();
}

}  // namespace motley::planner
