#include "worker/engine/lanes/compute_pacer.h"

#include <algorithm>

#include "worker/engine/base/monotonic.h"

namespace motley::engine {
namespace {

// A long emulated instruction still beats this often.
constexpr absl::Duration kHeartbeat = absl::Milliseconds(100);

}  // namespace

ComputePacer::ComputePacer(const DeviceDescription& device, const Clock& clock)
    : device_(device), clock_(clock), start_(clock.Now()), lane_end_(start_) {}

void ComputePacer::Begin() { Begin(clock_.Now()); }

void ComputePacer::Begin(absl::Duration ready) { start_ = std::max(lane_end_, ready); }

void ComputePacer::End(std::optional<double> flops) {
  const absl::Duration now = clock_.Now();
  if (!flops) {  // not an instruction that a device would notice
    lane_end_ = device_.flops_per_second > 0 ? start_ : now;
    return;
  }
  // Also of a host that is late with every piece: it works.
  Beat();
  if (device_.flops_per_second <= 0) {
    busy_seconds_ += absl::ToDoubleSeconds(std::max(now - start_, absl::ZeroDuration()));
    lane_end_ = now;
    return;
  }
  const absl::Duration declared = device_.launch + absl::Seconds(*flops / device_.flops_per_second);
  busy_seconds_ += absl::ToDoubleSeconds(declared);
  lane_end_ = start_ + declared;
  if (now > lane_end_) {
    lateness_seconds_ += absl::ToDoubleSeconds(now - lane_end_);
    lane_end_ = now;
    return;
  }
  // The clock may be a fake one: sleep the real difference, in pieces that let the owner show that it lives.
  int64_t wake_ns = MonotonicNs();
  for (absl::Duration left = lane_end_ - now; left > absl::ZeroDuration(); left -= kHeartbeat) {
    wake_ns += absl::ToInt64Nanoseconds(std::min(left, kHeartbeat));
    SleepUntilNs(wake_ns);
    Beat();
  }
}

}  // namespace motley::engine
