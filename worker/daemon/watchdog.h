// When does a rank count as hung? A pure decision over what was last heard of it.
//
// A rank speaks every 0.25 s as long as its process runs, and says more when its work moves on. Silence means that the process is
// stopped: that is noticed after silence_limit, whatever the length of a step. Before its first word it loads libraries, which
// takes minutes from a cold share: then its process is looked at, and patience lasts as long as that works. Words without
// movement mean that it waits (perhaps for a stopped peer, which its own worker notices first) or that it is stuck: noticed after
// several times what the simulated step takes.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace motley::worker {

struct WatchConfig {
  absl::Duration silence_limit = absl::Seconds(3);
  absl::Duration stopped_limit = absl::Seconds(10);  // before the first word: of a process that the system says is stopped
  absl::Duration stuck_floor = absl::Seconds(30);
  double stuck_steps = 10;  // times the predicted step
};

struct WatchState {
  absl::Duration started;       // all of them steady times
  absl::Duration last_word;     // anything from the rank; `started` before the first
  absl::Duration last_advance;  // its work moved; `started` before the first
  bool has_spoken = false;
  // Before the first word (process_signs.h): when it was last seen to work, and whether it is stopped.
  absl::Duration last_sign;
  bool stopped = false;
  bool has_advanced = false;      // took the first instruction of a step (or of a measurement)
  absl::Duration predicted_step;  // 0: not known (profiling)
  absl::Duration first_progress;  // patience before the first word and the first advance
  std::string doing;
};

struct WatchDecision {
  bool hung = false;
  std::string reason;
};

// "; last heard: step 7, gather", what it was doing then; empty before it has said so.
std::string LastHeard(const WatchState& state);

WatchDecision Decide(absl::Duration now, const WatchState& state, const WatchConfig& config);

}  // namespace motley::worker
