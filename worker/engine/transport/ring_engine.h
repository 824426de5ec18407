// One pass of segments around the ring, both directions at once: the caller's thread receives, an own thread sends.
// Private to the engine. docs/inside/collectives.md
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/dtype.h"
#include "worker/engine/transport/link_pacer.h"
#include "worker/engine/transport/ring_stream.h"
#include "worker/engine/transport/segment_message.h"

namespace motley::engine {

enum class RingCombine { kCopy, kAddFloat32, kAddFloat64, kAddFloat16, kAddBFloat16 };
RingCombine SumOf(DType dtype);

class RingEngine {
 public:
  // A neighbour, and whether its CLOCK_MONOTONIC is ours (same machine).
  struct Neighbour {
    Peer peer;
    bool shared_clock = false;
  };
  // `patience` bounds each wait for a neighbour. The pacer and the sockets must outlive the engine. With two members left and
  // right are one socket.
  RingEngine(Neighbour left, Neighbour right, LinkPacer& pacer, absl::Duration patience);
  ~RingEngine();

  // Blocks until everything is received and sent. `progress` is called after each received segment. UNAVAILABLE with its fault: a
  // neighbour was lost (kPeer), or the ranks run different programs (kOurs). The engine is dead then.
  absl::StatusOr<TransferTimes> Pass(const RingStream& stream, char* array, RingCombine combine, int64_t ready_ns,
                                     const std::function<void()>& progress);
  // Ends the connections: wakes a Pass under way, and the neighbours'. Thread-safe.
  void Abort();

 private:
  // One Pass, shared by the two threads.
  struct Job {
    const RingStream* stream = nullptr;
    char* array = nullptr;
    std::vector<int64_t> ready_ns;  // by segment: when it may be sent on
    int64_t available = 0;          // segments [0, available) may be sent
    int64_t sent_end_ns = 0;
    bool sender_done = false;
    absl::Status error;  // the first one
  };

  // Tells the left neighbour that this rank is there; when the right one is.
  absl::StatusOr<int64_t> MeetRight(uint64_t sequence, int64_t ready_ns);
  void SenderLoop();
  absl::Status SendAll(Job& job, uint64_t sequence);
  absl::Status Receive(Job& job, RingCombine combine, uint64_t sequence, const std::function<void()>& progress, int64_t* end_ns);
  void Fail(Job& job, const absl::Status& error);

  const Neighbour left_, right_;
  LinkPacer& pacer_;
  const absl::Duration patience_;
  std::vector<char> terms_;  // one segment that is added, not copied
  std::atomic<bool> aborted_{false};

  absl::Mutex mutex_;
  absl::CondVar changed_;
  Job* job_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the pointer; the job's fields too while both threads run
  uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread sender_;
};

}  // namespace motley::engine
