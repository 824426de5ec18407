#include "common/device/device_ranges.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace motley {
namespace {

struct Range {
  const char* field;
  double value, least, most;
  bool may_be_zero;  // not declared
};

}  // namespace

absl::Status CheckRanges(const DeviceDescription& device) {
  const Range ranges[] = {
      {"memory_bytes", static_cast<double>(device.memory_bytes), kLeastDeviceBytes, kMostDeviceBytes,
       device.kind == DeviceKind::kCpu},
      {"flops_per_second", device.flops_per_second, kLeastFlops, kMostFlops, true},
      {"launch_seconds", absl::ToDoubleSeconds(device.launch), 0, kMostLatencySeconds, true},
      {"link_bytes_per_second", device.link_bytes_per_second, kLeastRate, kMostDeviceLinkRate, true},
      {"node_link_bytes_per_second", device.node_link_bytes_per_second, kLeastRate, kMostNicRate, true},
      {"host_link_bytes_per_second", device.host_link_bytes_per_second, kLeastRate, kMostDeviceLinkRate, true},
      {"host_root", static_cast<double>(device.host_root), -1, kMostHostRoot, true},
      {"node_host_memory_bytes", static_cast<double>(device.node_host_memory_bytes), kLeastDeviceBytes, kMostHostBytes, true},
      {"link_latency_seconds", absl::ToDoubleSeconds(device.link_latency), 0, kMostLatencySeconds, true}};
  for (const Range& range : ranges) {
    if (range.value == 0 && range.may_be_zero) continue;
    if (std::isfinite(range.value) && range.value >= range.least && range.value <= range.most) continue;
    return absl::InvalidArgumentError(absl::StrCat("device '", device.id.value(), "': ", range.field, " is ", range.value,
                                                   "; it must lie between ", range.least, " and ", range.most,
                                                   " (is it given in the right unit?)"));
  }
  return absl::OkStatus();
}

}  // namespace motley
