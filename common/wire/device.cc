#include "common/wire/device.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/device/device_kinds.h"
#include "common/wire/both_ways.h"

namespace motley::wire {
namespace {

constexpr int kMostThreads = 1024;

absl::Status CheckNumber(const v1::DeviceDescription& proto, std::string_view field, double value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("device '", proto.id(), "': ", std::string(field), " must be a finite number of at least 0, got ", value));
}

WIRE_MESSAGE(v1::CardDescription, CardDescription) {
  WIRE_FIELD(uuid, plain.uuid);
  WIRE_FIELD(bus, plain.bus);
  WIRE_FIELD(driver, plain.driver);
  WIRE_FIELD(driver_cuda, plain.driver_cuda);
  WIRE_FIELD(compute_capability, plain.compute_capability);
  WIRE_FIELD(pcie_generation, plain.pcie_generation);
  WIRE_FIELD(pcie_lanes, plain.pcie_lanes);
  WIRE_FIELD(used_by_others_bytes, plain.used_by_others_bytes);
  WIRE_FIELD(name, plain.name);
  WIRE_LIST(nvlink_peers, plain.nvlink_peers);
  WIRE_LIST(p2p_peers, plain.p2p_peers);
  WIRE_FIELD(power_limit_watts, plain.power_limit_watts);
  WIRE_COUNT(nccl_version, plain.nccl_version);
  WIRE_FIELD(kernels, plain.kernels);
  WIRE_FIELD(why_no_kernels, plain.why_no_kernels);
  WIRE_FIELD(note, plain.note);
  WIRE_FIELD(health, plain.health);
  WIRE_FIELD(lost, plain.lost);
}

WIRE_FIELDS(v1::DeviceDescription, DeviceDescription) {
  WIRE_FIELD(id, plain.id);
  WIRE_FIELD(model, plain.model);
  WIRE_FIELD(memory_bytes, plain.memory_bytes);
  WIRE_FIELD(flops_per_second, plain.flops_per_second);
  WIRE_FIELD(launch_seconds, plain.launch);
  WIRE_FIELD(link_bytes_per_second, plain.link_bytes_per_second);
  WIRE_FIELD(node_link_bytes_per_second, plain.node_link_bytes_per_second);
  WIRE_FIELD(link_latency_seconds, plain.link_latency);
  WIRE_FIELD(host_link_bytes_per_second, plain.host_link_bytes_per_second);
  WIRE_FIELD(node_host_memory_bytes, plain.node_host_memory_bytes);
  WIRE_FIELD(threads, plain.threads);
  WIRE_FIELD(libtorch, plain.libtorch);
  if (!Way::kWrites || plain.card != CardDescription()) WIRE_PART(card, plain.card);
}

}  // namespace

v1::DeviceDescription ToProto(const DeviceDescription& device) {
  v1::DeviceDescription proto;
  ToWire way;
  Fields(way, proto, device);
  proto.set_kind(RowOf(device.kind).name);
  if (device.host_root >= 0) proto.set_host_root(device.host_root);
  return proto;
}

absl::StatusOr<DeviceDescription> FromProto(const v1::DeviceDescription& proto) {
  const size_t slash = proto.id().find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == proto.id().size()) {
    return absl::InvalidArgumentError(absl::StrCat("device id '", proto.id(), "' must have the form node/device"));
  }
  DeviceDescription device;
  const absl::StatusOr<DeviceKind> kind = ParseDeviceKind(proto.kind());
  if (!kind.ok()) return absl::InvalidArgumentError(absl::StrCat("device '", proto.id(), "': ", kind.status().message()));
  device.kind = *kind;
  const std::pair<std::string_view, double> numbers[] = {{"memory_bytes", static_cast<double>(proto.memory_bytes())},
                                                         {"flops_per_second", proto.flops_per_second()},
                                                         {"launch_seconds", proto.launch_seconds()},
                                                         {"link_bytes_per_second", proto.link_bytes_per_second()},
                                                         {"node_link_bytes_per_second", proto.node_link_bytes_per_second()},
                                                         {"link_latency_seconds", proto.link_latency_seconds()},
                                                         {"host_link_bytes_per_second", proto.host_link_bytes_per_second()},
                                                         {"host_root", proto.host_root()},
                                                         {"node_host_memory_bytes", proto.node_host_memory_bytes()},
                                                         {"threads", proto.threads()}};
  for (const auto& [field, value] : numbers) {
    if (absl::Status status = CheckNumber(proto, field, value); !status.ok()) return status;
  }
  FromWire way;
  Fields(way, proto, device);
  if (proto.has_host_root()) device.host_root = proto.host_root();
  device.threads = std::clamp(device.threads, 1, kMostThreads);
  return device;
}

}  // namespace motley::wire
