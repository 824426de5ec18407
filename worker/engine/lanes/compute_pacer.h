// Makes compute take as long as the declared device would need (emulated devices); passes through otherwise.
//
// Keeps the lane's virtual clock: an instruction starts at max(end of the lane's previous one, ends of its dependencies), lasts
// launch + flops / flops_per_second, and returns to the caller no earlier than that end. When the host was late
// (real work took longer) the lateness is counted and the clock moves on from the real time.
// Not thread-safe: one per lane.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/device/device.h"
#include "worker/engine/lanes/lane_pacer.h"

namespace motley::engine {

class ComputePacer : public LanePacer {
 public:
  ComputePacer(const DeviceDescription& device, const Clock& clock);
  // Call when the instruction may start (dependencies done) and again when the real work is done.
  void Begin();
  // The same with the time at which the dependencies ended by their own clocks: what the host added in waking up is not
  // passed on to what follows.
  void Begin(absl::Duration ready) override;
  void End(std::optional<double> flops) override;  // sleeps until the declared end
  absl::Duration begin() const override { return start_; }
  absl::Duration end() const override { return lane_end_; }
  // Called by Beat and End, and at least every 100 ms while End sleeps.
  void set_heartbeat(std::function<void()> heartbeat) { heartbeat_ = std::move(heartbeat); }
  // Something has moved, also where a stream's marks tell the time.
  void Beat() {
    if (heartbeat_) heartbeat_();
  }
  // Seconds that declared instructions took in all (busy), and how late the host made them.
  double busy_seconds() const { return busy_seconds_; }
  double lateness_seconds() const { return lateness_seconds_; }
  void ResetCounters() { busy_seconds_ = lateness_seconds_ = 0; }

 private:
  const DeviceDescription device_;
  const Clock& clock_;
  absl::Duration start_, lane_end_;
  double busy_seconds_ = 0, lateness_seconds_ = 0;
  std::function<void()> heartbeat_;
};

}  // namespace motley::engine
