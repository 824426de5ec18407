// When does a rank count as hung? A pure decision over what was last heard of it.
//
// A rank speaks every 0.25 s as long as its process runs, and says more when its work moves on. Silence means that the process is
// stopped: that is noticed after silence_limit, whatever the length of a step. Words without movement mean that it waits
// (perhaps for a stopped peer, which its own worker notices first) or that it is stuck: noticed after several times what
// the simulated step takes.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace motley::worker {

struct WatchConfig {
  absl::Duration silence_limit = absl::Seconds(3);
  absl::Duration stuck_floor = absl::Seconds(30);
  double stuck_steps = 10;  // times the predicted step
};

struct WatchState {
  absl::Duration started;       // all of them steady times
  absl::Duration last_word;     // anything from the rank; `started` before the first
  absl::Duration last_advance;  // its work moved; `started` before the first
  bool has_spoken = false;
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
