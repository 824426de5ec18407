// The emulated link between a device and its host's memory, and the schedule of the lane that copies over it.
//
// Devices of a node with one host_root share the link, whichever ranks they belong to. A copy reserves it chunk by chunk, the
// next when the last one is over by the schedule, so that two ranks which copy at once have half of it each. Both directions are
// apart. Where no speed is declared a copy takes what it takes. One thread at a time: the copy lane's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/device/device.h"
#include "worker/engine/transport/link_clock.h"
#include "worker/engine/transport/transfer_pacer.h"

namespace motley::engine {

class HostLink {
 public:
  // Of the link's time; what others wait for it at most, each.
  static constexpr double kChunkSeconds = 10e-3;

  // `device` is devices[rank]. `clock` must outlive the link.
  HostLink(const DeviceDescription& device, const std::vector<DeviceId>& devices, int rank, LinkClock& clock);

  // Copies one part: offset, bytes.
  using CopyPart = std::function<absl::Status(int64_t offset, int64_t bytes)>;
  // Calls `copy` for all of `bytes`, part by part, and returns when the last one is over by the schedule. kEgress: to the host.
  // The error of `copy`.
  absl::Status Copy(Direction direction, int64_t bytes, const CopyPart& copy);

  TransferPacer& pacer() { return pacer_; }
  // Called after each part. Set before any copy.
  void set_progress(std::function<void()> progress) { progress_ = std::move(progress); }
  // How late the host was with copies, in all. Thread-safe.
  double lateness_seconds() const { return lateness_seconds_; }

 private:
  const double bytes_per_second_;  // 0: not paced, as a real card is not
  const int link_;
  LinkClock& links_;
  SystemClock clock_;
  TransferPacer pacer_{clock_};
  std::function<void()> progress_;
  std::atomic<double> lateness_seconds_{0};
};

}  // namespace motley::engine
