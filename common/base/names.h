// What names and addresses of nodes and devices may be: asked alike by the worker that says them and the coordinator that hears.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace motley {

// 1 to 63 letters, digits, '-', '.' or '_', not dots alone: names become parts of device ids, file names and labels.
// INVALID_ARGUMENT begins with `field`.
absl::Status CheckName(std::string_view field, const std::string& name);
// The node's name, a slash and a name.
absl::Status CheckDeviceId(std::string_view field, const NodeName& node, const DeviceId& device);
// A numeric IPv4 or IPv6 address and nothing besides, no brackets, no port, no zone.
absl::Status CheckNumericAddress(std::string_view field, const std::string& address);
// One of these at which peers can find a node. Not 0.0.0.0, ::, a group's or everybody's address, nor fe80::/10, which means
// nothing without the card (a zone) and is not the same card on every machine.
absl::Status CheckHostAddress(std::string_view field, const std::string& address);

}  // namespace motley
