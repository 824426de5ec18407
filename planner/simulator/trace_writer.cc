#include "planner/simulator/trace_writer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/parse_json.h"

namespace motley::planner {

void TraceWriter::Process(size_t process, const std::string& name) {
  Name("process_name", process, 0, name);
  absl::StrAppend(&events_, R"({"name":"process_sort_index","ph":"M","pid":)", process, R"(,"args":{"sort_index":)", process,
                  "}},\n");
}

void TraceWriter::Thread(size_t process, int thread, const std::string& name) { Name("thread_name", process, thread, name); }

void TraceWriter::Span(size_t process, int thread, const std::string& name, std::string_view category, double begin_seconds,
                       double end_seconds, const char* index_name, size_t index) {
  if (end_seconds <= begin_seconds) return;
  absl::StrAppend(&events_, R"({"name":")", name, R"(","cat":")", std::string(category), R"(","ph":"X","pid":)", process,
                  R"(,"tid":)", thread, R"(,"ts":)");
  AppendMicroseconds(begin_seconds);
  events_ += R"(,"dur":)";
  AppendMicroseconds(end_seconds - begin_seconds);
  absl::StrAppend(&events_, R"(,"args":{")", index_name, "\":", index, "}},\n");
}

std::string TraceWriter::Finish() && {
  if (!events_.empty()) events_.resize(events_.size() - 2);  // the last comma
  return absl::StrCat("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", events_, "\n]}\n");
}

// With three digits: nanoseconds.
void TraceWriter::AppendMicroseconds(double seconds) {
  const auto ns = std::llround(seconds * 1e9);
  absl::StrAppend(&events_, ns / 1000, ".", absl::Dec(ns % 1000, absl::kZeroPad3));
}

void TraceWriter::Name(const char* what, size_t process, int thread, const std::string& name) {
  absl::StrAppend(&events_, R"({"name":")", what, R"(","ph":"M","pid":)", process, R"(,"tid":)", thread, R"(,"args":{"name":)",
                  JsonText(name), "}},\n");
}

}  // namespace motley::planner
