#include "planner/simulator/trace.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

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

void AppendName(const char* what, size_t rank, Lane lane, const std::string& name, std::string* out) {
  absl::StrAppend(out, R"({"name":")", what, R"(","ph":"M","pid":)", rank, R"(,"tid":)", static_cast<int>(lane),
                  R"(,"args":{"name":)", nlohmann::json(name).dump(), "}},\n");
}

}  // namespace

std::string TraceJson(const std::vector<DeviceId>& devices, const std::vector<Program>& programs, const Simulation& simulation) {
  // Written as text: a large cluster's step has a hundred thousand events.
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (size_t r = 0; r < programs.size(); ++r) {
    AppendName("process_name", r, Lane::kCompute, absl::StrCat("rank ", r, " ", devices[r].value()), &out);
    AppendName("thread_name", r, Lane::kCompute, "compute", &out);
    AppendName("thread_name", r, Lane::kCollective, "collective", &out);
    for (size_t i = 0; i < programs[r].instructions.size(); ++i) {
      const Operation& op = programs[r].instructions[i].op;
      const SimulatedSpan& span = simulation.ranks[r].spans[i];
      if (span.end_seconds <= span.begin_seconds) continue;
      absl::StrAppend(&out, R"({"name":")", SpanName(op), R"(","cat":")", std::string(OperationName(op)), R"(","ph":"X","pid":)",
                      r, R"(,"tid":)", static_cast<int>(LaneOf(op)));
      absl::StrAppendFormat(&out, R"(,"ts":%.3f,"dur":%.3f,"args":{"instruction":%d}},)", span.begin_seconds * 1e6,
                            (span.end_seconds - span.begin_seconds) * 1e6, i);
      out += '\n';
    }
  }
  out.resize(out.size() - 2);  // the last comma
  return out + "\n]}\n";
}

}  // namespace motley::planner
