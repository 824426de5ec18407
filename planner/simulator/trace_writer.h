// Chrome trace JSON, event by event: processes, their threads, spans on them. Written as text: a large cluster's step has a
// hundred thousand events.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace motley::planner {

class TraceWriter {
 public:
  void Process(size_t process, const std::string& name);
  void Thread(size_t process, int thread, const std::string& name);
  // Left out when it takes no time. `index`: of the task or instruction.
  void Span(size_t process, int thread, const std::string& name, std::string_view category, double begin_seconds,
            double end_seconds, const char* index_name, size_t index);
  std::string Finish() &&;

 private:
  void AppendMicroseconds(double seconds);
  void Name(const char* what, size_t process, int thread, const std::string& name);
  std::string events_;
};

}  // namespace motley::planner
