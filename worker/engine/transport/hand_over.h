// The two ends of hand-overs from one rank to another, over one socket that carries nothing else. Private to the engine.
// docs/inside/collectives.md
//
// Both ends first say their terms: the hand-over's number, its size, and when they are ready by the emulated schedule. So neither
// begins without the other, and both know when it began. Then segments come; the receiver acknowledges with the time at which the
// last of them was in, and that is the end on both sides.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/engine/transport/link_pacer.h"
#include "worker/engine/transport/segment_message.h"

namespace motley::engine {

struct HandOverPath {
  Peer peer;
  LinkPacer pacer;                      // of this rank's end
  double slowest_bytes_per_second = 0;  // of all links between the two ranks; 0 = not paced
  bool shared_clock = false;            // the peer's CLOCK_MONOTONIC is ours (same machine)
  absl::Duration patience;              // bounds each wait for the peer
};

// Used by one thread, but for Abort. Errors of both: UNAVAILABLE with its fault: the peer was lost (kPeer), or the ranks run
// different programs (kOurs). The end is dead then.
class HandOverSender {
 public:
  // `ring_segment_bytes`: of the paced collective that this rank is in just now, 0 = none. Segments are no smaller: links serve
  // whoever asks in turn, so equal segments are equal shares.
  HandOverSender(HandOverPath path, const std::atomic<int64_t>& ring_segment_bytes)
      : path_(std::move(path)), ring_segment_bytes_(ring_segment_bytes) {}

  // Blocks until the peer has all bytes.
  absl::StatusOr<TransferTimes> Send(const char* data, int64_t bytes, int64_t ready_ns, const std::function<void()>& progress);
  // Wakes a Send under way, and the peer. Thread-safe.
  void Abort();

 private:
  absl::StatusOr<int64_t> SendSegments(const char* data, int64_t bytes, int64_t begin_ns, const std::function<void()>& progress);

  HandOverPath path_;
  const std::atomic<int64_t>& ring_segment_bytes_;
  uint32_t sequence_ = 0;
};

class HandOverReceiver {
 public:
  explicit HandOverReceiver(HandOverPath path) : path_(std::move(path)) {}

  // Blocks until all bytes are in.
  absl::StatusOr<TransferTimes> Receive(char* data, int64_t bytes, int64_t ready_ns, const std::function<void()>& progress);
  void Abort();

 private:
  absl::StatusOr<int64_t> ReceiveSegments(char* data, int64_t bytes, int64_t begin_ns, const std::function<void()>& progress);

  HandOverPath path_;
  uint32_t sequence_ = 0;
};

}  // namespace motley::engine
