#include "planner/live/program_trace.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/simulator/trace_writer.h"

namespace motley::planner {
namespace {

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
