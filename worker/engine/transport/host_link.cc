#include "worker/engine/transport/host_link.h"

#include <algorithm>
#include <cmath>

#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/transport/segment_message.h"

namespace motley::engine {
namespace {

// Roots count from the first link, devices without one from the last: a root is no device's.
int LinkOf(const DeviceDescription& device, const std::vector<DeviceId>& devices, int rank) {
  if (device.host_root >= 0) return LinkClock::kFirstHostLink + device.host_root % LinkClock::kMaxHostLinks;
  int ordinal = 0;
  for (int r = 0; r < rank; ++r) ordinal += NodeOf(devices[r]) == NodeOf(devices[rank]);
  return LinkClock::kMaxLinks - 1 - ordinal % LinkClock::kMaxHostLinks;
}

}  // namespace

HostLink::HostLink(const DeviceDescription& device, const std::vector<DeviceId>& devices, int rank, LinkClock& clock)
    : bytes_per_second_(device.kind == DeviceKind::kEmulated ? device.host_link_bytes_per_second : 0),
      link_(LinkOf(device, devices, rank)),
      links_(clock) {}

absl::Status HostLink::Copy(Direction direction, int64_t bytes, const CopyPart& copy) {
  if (bytes_per_second_ == 0) {
    MOTLEY_RETURN_IF_ERROR(copy(0, bytes));
    if (progress_) progress_();
    return absl::OkStatus();
  }
  WakePunctually();
  const auto chunk_bytes = std::max<int64_t>(1, static_cast<int64_t>(bytes_per_second_ * kChunkSeconds));
  TransferTimes times;
  times.begin_ns = times.end_ns = absl::ToInt64Nanoseconds(pacer_.start());
  for (int64_t offset = 0; offset < bytes;) {
    const int64_t part = std::min(chunk_bytes, bytes - offset);
    const auto duration_ns = static_cast<int64_t>(std::ceil(static_cast<double>(part) / bytes_per_second_ * 1e9));
    const LinkClock::Slot slot = links_.Reserve(link_, direction, duration_ns, times.end_ns);
    if (offset == 0) times.begin_ns = slot.begin_ns;
    times.end_ns = slot.end_ns;
    MOTLEY_RETURN_IF_ERROR(copy(offset, part));
    offset += part;
    if (offset < bytes) SleepUntilNs(times.end_ns);
    if (progress_) progress_();
  }
  AwaitEnd(times, /*paced=*/true);
  lateness_seconds_ += times.lateness_ns * 1e-9;
  pacer_.Took(absl::Nanoseconds(times.begin_ns), absl::Nanoseconds(times.end_ns));
  return absl::OkStatus();
}

}  // namespace motley::engine
