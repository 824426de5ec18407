// Lines on their way to a descriptor that may not be read, a pipe whose reader hangs or a stopped terminal: who writes never
// waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"

namespace motley {

// Thread-safe. A thread of its own writes them, in order; nobody waits for it at the end for longer than he says.
class LineQueue {
 public:
  // When more than `max_bytes` wait, the oldest are dropped, those that are kept last. What came of it stands in their place:
  // `dropped_line` of their number. Takes no signals.
  LineQueue(int fd, size_t max_bytes, std::function<std::string(int64_t dropped)> dropped_line);
  ~LineQueue();
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;

  // Each with its line end.
  void Add(std::string line, bool keep);
  // Until all is written. False: patience ended.
  bool Flush(absl::Duration patience);

 private:
  struct Shared;  // outlives the queue in a thread that still writes
  const std::shared_ptr<Shared> shared_;
};

}  // namespace motley
