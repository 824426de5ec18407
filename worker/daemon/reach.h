// Whether the nodes reach each other's data addresses, tried before a job depends on it, and how fast bytes go there when an
// examination asks. Every worker listens on a port of its data address (worker/daemon/reach_listener).
#pragma once

#include <deque>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/session/session.h"
#include "worker/daemon/outbox.h"

namespace motley::worker {

// Connects to every target, many at a time, and reads who answers; blocks for `patience` at most for each few hundred of them.
// With `burst` one after the other, and each is sent a burst: twice the patience for each. With `large` those that were reached
// are sent large packets, one after the other and for `patience` in all. The connections leave from `own` as those of ranks do
// (common/base/data_way.h); empty: from where the kernel likes. An answer's error names node, address and what happened; empty
// ones once `cancelled`. Who could not be tried for want of descriptors or memory here has no answer: nothing is known of it.
ReachReport CheckReach(const ReachCheckCommand& check, const std::string& own, const Clock& clock, absl::Duration patience,
                       const absl::Notification& cancelled);

// Makes such checks one after the other on a thread of its own. Thread-safe.
class ReachChecker {
 public:
  // `own`: the node's data address.
  ReachChecker(std::string own, const Clock& clock, Outbox& outbox);
  ~ReachChecker();
  // The answer goes to the outbox. Beyond a few dozen that wait the oldest is dropped: nobody waits for it any more.
  void Check(ReachCheckCommand check);

 private:
  void Loop();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return cancelled_.HasBeenNotified() || !waiting_.empty(); }

  const std::string own_;
  const Clock& clock_;
  Outbox& outbox_;
  absl::Notification cancelled_;
  absl::Mutex mutex_;
  std::deque<ReachCheckCommand> waiting_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace motley::worker
