// How a worker ends that was told to (stop_signals.h): the coordinator hears of it and lets the job save and go on
// without this node; the worker waits for its ranks' end, and until other nodes have what only its disk has, as long as
// worker.stop_seconds allows. Told again, it ends at once.
#pragma once

#include <signal.h>

#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/daemon/worker.h"

namespace motley::worker {

struct StopState {
  absl::Duration asked_at;
  absl::Duration limit;    // worker.stop_seconds
  bool training = false;   // ranks of a job run here
  bool connected = false;  // with the coordinator, which alone makes them save
  bool asked_again = false;
  bool files = false;  // other nodes may be bringing what only this node's disk has
};

struct StopDecision {
  bool wait = false;
  std::string reason;
};

StopDecision Decide(absl::Duration now, const StopState& state);

// Blocks until the decision is to wait no more. `signals` are blocked in every thread.
void LetRanksSave(Worker& worker, absl::Duration limit, const sigset_t& signals, const Clock& clock);

}  // namespace motley::worker
