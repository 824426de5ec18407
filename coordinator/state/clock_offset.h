// How far a worker's clock of the wall is from the coordinator's, from what its heartbeats say. For people only: nothing that
// decides looks at it.
//
// A heartbeat says the worker's time when it left and is read some delay later, which nobody measures. So each one gives
// offset - delay; the least delayed of the newest few is the nearest, and what they differ by is taken for the error.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace motley::coordinator {

class ClockOffset {
 public:
  struct Estimate {
    int64_t offset_ms = 0;  // positive: the worker's clock is ahead
    int64_t margin_ms = 0;  // the true offset is within offset_ms +- margin_ms
    // Off by more than `ms` whatever the error is.
    bool beyond(int64_t ms) const { return offset_ms - margin_ms > ms || offset_ms + margin_ms < -ms; }
  };

  // One heartbeat: any number may come from a worker.
  void Add(int64_t worker_unix_ms, int64_t coordinator_unix_ms);
  // Nothing: the worker has not said its time yet.
  std::optional<Estimate> estimate() const;

 private:
  std::deque<int64_t> offsets_ms_;  // the newest last
};

}  // namespace motley::coordinator
