// What measurements of one device's compute have in common.
#pragma once

#include <c10/util/Exception.h>

#include <string>

#include "absl/status/status.h"
#include "worker/engine/lanes/lane_timer.h"

namespace motley::engine {

// The host disturbs single runs; the fastest of a few counts. A device whose declared time was met needs one.
inline constexpr int kRepeats = 3;
// On a stream, before those that count: they follow each other without a wait, and this one fills the stream.
inline int WarmUpsOf(const LaneTimer& timer) { return timer.on_stream() ? 1 : 0; }

inline void Check(const absl::Status& status) { TORCH_CHECK(status.ok(), std::string(status.message())); }

}  // namespace motley::engine
