// The kinds of devices: a row each.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"

namespace motley {

struct DeviceKindRow {
  DeviceKind kind;
  const char* name;         // in worker.toml, on the wire, in listings
  const char* name_prefix;  // of devices that nobody named: "cpu0", "gpu1"
  bool speed_is_declared;   // by worker.toml; others are as fast as they are
  bool on_host;             // computes with the host's cores at their own speed: measured one at a time
};

const std::vector<DeviceKindRow>& DeviceKinds();
const DeviceKindRow& RowOf(DeviceKind kind);
// INVALID_ARGUMENT names the known ones.
absl::StatusOr<DeviceKind> ParseDeviceKind(std::string_view name);

}  // namespace motley
