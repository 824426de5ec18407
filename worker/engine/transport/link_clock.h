// When each emulated link of a node is next free: one number per link and direction, in memory that the node's ranks share. Links
// of one node are its NIC, those of its devices, and those to its host's memory.
//
// A transfer reserves a slot on every link it crosses: it begins when the link is free and lasts bytes / rate. Two ranks
// that use one NIC queue behind each other, so contention is real. Nobody queues behind a slot that is to begin later, as that of
// a segment that another link has not let through yet: it takes its time from the link, at whatever moment. Thread-safe and
// process-safe (atomics; no lock that a killed rank could hold).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace motley::engine {

enum class Direction { kEgress = 0, kIngress = 1 };

class LinkClock {
 public:
  static constexpr int kNic = 0;  // the node's NIC; its devices follow at 1 + their ordinal on the node
  static constexpr int kMaxDeviceLinks = 256, kMaxHostLinks = 256;
  static constexpr int kFirstHostLink = kMaxDeviceLinks;  // those to the host's memory (host_link.h)
  static constexpr int kMaxLinks = kMaxDeviceLinks + kMaxHostLinks;

  // Maps the inherited memory file; fd < 0: memory of this process alone. The file is extended when it is too short.
  static absl::StatusOr<std::unique_ptr<LinkClock>> Map(int fd);
  ~LinkClock();
  LinkClock(const LinkClock&) = delete;
  LinkClock& operator=(const LinkClock&) = delete;

  struct Slot {
    int64_t begin_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC
  };
  // The link's next slot of `duration_ns` that begins no earlier than `earliest_ns`.
  Slot Reserve(int link, Direction direction, int64_t duration_ns, int64_t earliest_ns);
  // The slot of a transfer whose bytes reach the link during `before` (cut-through: it begins as early as the last byte
  // allows, but not before the first one came; a path without contention costs its slowest link once, not each in turn).
  Slot ReserveAfter(int link, Direction direction, int64_t duration_ns, const Slot& before) {
    return Reserve(link, direction, duration_ns, std::max(before.begin_ns, before.end_ns - duration_ns));
  }

 private:
  struct Link;
  explicit LinkClock(Link* links) : links_(links) {}
  Link* links_;
};

}  // namespace motley::engine
