#include "common/wire/device.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/device/device_kinds.h"

namespace motley::wire {
namespace {

constexpr int kMostThreads = 1024;

absl::Status CheckNumber(const v1::DeviceDescription& proto, std::string_view field, double value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("device '", proto.id(), "': ", std::string(field), " must be a finite number of at least 0, got ", value));
}

v1::CardDescription CardToProto(const CardDescription& card) {
  v1::CardDescription proto;
  proto.set_uuid(card.uuid);
  proto.set_bus(card.bus);
  proto.set_driver(card.driver);
  proto.set_driver_cuda(card.driver_cuda);
  proto.set_compute_capability(card.compute_capability);
  proto.set_pcie_generation(card.pcie_generation);
  proto.set_pcie_lanes(card.pcie_lanes);
  proto.set_used_by_others_bytes(card.used_by_others_bytes);
  proto.set_name(card.name);
  for (const std::string& peer : card.nvlink_peers) proto.add_nvlink_peers(peer);
  for (const std::string& peer : card.p2p_peers) proto.add_p2p_peers(peer);
  proto.set_power_limit_watts(card.power_limit_watts);
  proto.set_note(card.note);
  proto.set_health(card.health);
  proto.set_lost(card.lost);
  proto.set_nccl_version(card.nccl_version);
  return proto;
}

CardDescription CardFromProto(const v1::CardDescription& proto) {
  return {.uuid = proto.uuid(),
          .bus = proto.bus(),
          .driver = proto.driver(),
          .driver_cuda = proto.driver_cuda(),
          .compute_capability = proto.compute_capability(),
          .pcie_generation = proto.pcie_generation(),
          .pcie_lanes = proto.pcie_lanes(),
          .used_by_others_bytes = proto.used_by_others_bytes(),
          .name = proto.name(),
          .nvlink_peers = {proto.nvlink_peers().begin(), proto.nvlink_peers().end()},
          .p2p_peers = {proto.p2p_peers().begin(), proto.p2p_peers().end()},
          .power_limit_watts = proto.power_limit_watts(),
          .nccl_version = std::max(proto.nccl_version(), 0),
          .note = proto.note(),
          .health = proto.health(),
          .lost = proto.lost()};
}

}  // namespace

v1::DeviceDescription ToProto(const DeviceDescription& device) {
  v1::DeviceDescription proto;
  proto.set_id(device.id.value());
  proto.set_model(device.model);
  proto.set_kind(RowOf(device.kind).name);
  proto.set_memory_bytes(device.memory_bytes);
  proto.set_flops_per_second(device.flops_per_second);
  proto.set_launch_seconds(absl::ToDoubleSeconds(device.launch));
  proto.set_link_bytes_per_second(device.link_bytes_per_second);
  proto.set_node_link_bytes_per_second(device.node_link_bytes_per_second);
  proto.set_link_latency_seconds(absl::ToDoubleSeconds(device.link_latency));
  proto.set_host_link_bytes_per_second(device.host_link_bytes_per_second);
  if (device.host_root >= 0) proto.set_host_root(device.host_root);
  proto.set_node_host_memory_bytes(device.node_host_memory_bytes);
  proto.set_threads(device.threads);
  proto.set_libtorch(device.libtorch);
  if (device.card != CardDescription()) *proto.mutable_card() = CardToProto(device.card);
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
  device.id = DeviceId(proto.id());
  device.model = proto.model();
  device.memory_bytes = proto.memory_bytes();
  device.flops_per_second = proto.flops_per_second();
  device.launch = absl::Seconds(proto.launch_seconds());
  device.link_bytes_per_second = proto.link_bytes_per_second();
  device.node_link_bytes_per_second = proto.node_link_bytes_per_second();
  device.link_latency = absl::Seconds(proto.link_latency_seconds());
  device.host_link_bytes_per_second = proto.host_link_bytes_per_second();
  if (proto.has_host_root()) device.host_root = proto.host_root();
  device.node_host_memory_bytes = proto.node_host_memory_bytes();
  device.threads = std::clamp(proto.threads(), 1, kMostThreads);
  device.libtorch = proto.libtorch();
  device.card = CardFromProto(proto.card());
  return device;
}

}  // namespace motley::wire
