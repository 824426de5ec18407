// Takes bursts (worker/daemon/burst.h) for the reach listener: one at a time, from who proves the secret of an examination,
// bounded in bytes and time. Without an examination it keeps no connection.
#pragma once

#include <poll.h>

#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {

// The listener's thread alone uses it, but for Allow.
class BurstTaker {
 public:
  explicit BurstTaker(const Clock& clock) : clock_(clock) {}

  // Thread-safe. Replaces the secret before.
  void Allow(std::string secret, absl::Duration duration);

  // A connection that has been greeted; closed at once while no secret is allowed.
  void Add(UniqueFd socket);
  // What to wait for, and for how long at most (-1: no limit). Then Serve with the same entries. Neither waits.
  int AppendTo(std::vector<pollfd>* fds) const;
  void Serve(const pollfd* fds);

 private:
  enum class Stage { kSecret, kBurst, kOver };
  struct Peer {
    UniqueFd socket;
    Stage stage = Stage::kSecret;
    absl::Duration end;                   // of the stage
    std::string line;                     // of kSecret
    std::optional<absl::Duration> begun;  // of kBurst: when its first bytes were there
    int64_t bytes = 0;                    // after those
  };

  bool IsAllowed(std::string_view line);
  // False: the connection is done with.
  bool ServeReady(Peer& peer);
  bool OnSecret(Peer& peer);
  bool OnBurst(Peer& peer);
  bool OnLate(Peer& peer);
  bool Finish(Peer& peer);

  const Clock& clock_;
  std::list<Peer> peers_;  // the oldest first
  mutable absl::Mutex mutex_;
  std::string secret_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> said_ ABSL_GUARDED_BY(mutex_);  // lines that were taken for this secret
  absl::Duration allowed_until_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace motley::worker
