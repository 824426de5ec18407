// What measurements of one device's compute have in common.
#pragma once

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/engine/lanes/lane_timer.h"

namespace motley::engine {

// Of a few runs one counts. A device whose declared time was met needs one.
inline constexpr int kRepeats = 3;
// On a stream, before those that count: they follow each other without a wait, and this one fills the stream.
inline int WarmUpsOf(const LaneTimer& timer) { return timer.on_stream() ? 1 : 0; }

// Where the host computes, what else it does disturbs single runs: the fastest counts. A stream's times are the device's own,
// whose clocks rise and fall in a job, too: the one in the middle does.
inline double SecondsOf(std::vector<double> runs, const LaneTimer& timer) {
  const auto counts = runs.begin() + (timer.on_stream() ? static_cast<std::ptrdiff_t>(runs.size() / 2) : 0);
  std::nth_element(runs.begin(), counts, runs.end());
  return *counts;
}

inline void Check(const absl::Status& status) { TORCH_CHECK(status.ok(), std::string(status.message())); }

}  // namespace motley::engine
