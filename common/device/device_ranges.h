// What a device can have, wherever it is said: in a worker's configuration and hello, in a cluster's file, in a measurement.
// What lies outside is a slip in the unit, or a lie. Wide: from emulated devices on a laptop to machines some years ahead.
#pragma once

#include "absl/status/status.h"
#include "common/device/device.h"

namespace motley {

inline constexpr double kLeastFlops = 1e6, kMostFlops = 1e17;                  // a second
inline constexpr double kLeastDeviceBytes = 1 << 20, kMostDeviceBytes = 4e12;  // of memory
inline constexpr double kMostHostBytes = 1e15;                                 // of a node's memory; at least as a device's
inline constexpr int kMostHostRoot = 255;
inline constexpr double kLeastRate = 1e3;                                  // bytes a second, of any link
inline constexpr double kMostNicRate = 2e12, kMostDeviceLinkRate = 10e12;  // the same
inline constexpr double kMostLatencySeconds = 10;                          // of a link; of a launch

// Numbers as the rank obeys them. 0 stays "not declared", but for the memory of devices other than CPUs. INVALID_ARGUMENT names
// the device, the field, its value and the range.
absl::Status CheckRanges(const DeviceDescription& device);

}  // namespace motley
