// DeviceDescription <-> its wire form. Durations travel as seconds.
#pragma once

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "proto/motley/v1/worker.pb.h"

namespace motley::wire {

v1::DeviceDescription ToProto(const DeviceDescription& device);
// INVALID_ARGUMENT names the field: an id without a node, an unknown kind, a negative or non-finite number.
absl::StatusOr<DeviceDescription> FromProto(const v1::DeviceDescription& proto);

}  // namespace motley::wire
