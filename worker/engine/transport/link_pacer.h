// The links that one rank's traffic to a peer and from a peer crosses, and how long a segment needs on them.
//
// Out: the device's own link and, when the peer is on another node, the node's NIC. In: the NIC when the peer is on another node,
// and the device's link. A ring has one pacer for its two neighbours, each hand-over one for its peer; all of a node's pacers
// reserve on the same LinkClock, so what shares a link queues for it. Times are CLOCK_MONOTONIC nanoseconds. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/device/device.h"
#include "worker/engine/transport/link_clock.h"

namespace motley::engine {

class LinkPacer {
 public:
  struct Path {
    std::optional<int> to, from;  // ranks; none: nothing goes that way
  };
  // `device` is devices[rank]. `clock` must outlive the pacer.
  LinkPacer(const DeviceDescription& device, const std::vector<DeviceId>& devices, int rank, const Path& path, LinkClock& clock);

  bool paced_out() const { return !out_.empty() || latency_ns_ > 0; }
  bool paced_in() const { return !in_.empty(); }
  // When the segment is on its way, latency included, if its bytes were there at `ready_ns`.
  LinkClock::Slot ReserveOut(int64_t bytes, int64_t ready_ns);
  // When the segment comes in, if the sender's links carried it during `sent`.
  LinkClock::Slot ReserveIn(int64_t bytes, const LinkClock::Slot& sent);

 private:
  struct Hop {
    int link;
    double bytes_per_second;
  };
  std::vector<Hop> out_, in_;
  int64_t latency_ns_ = 0;
  LinkClock& clock_;
};

}  // namespace motley::engine
