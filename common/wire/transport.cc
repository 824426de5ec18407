#include "common/wire/transport.h"

#include <optional>
#include <utility>

namespace motley::wire {
namespace {

struct TransportRow {
  Transport plain;
  v1::Transport wire;
};
constexpr TransportRow kTransports[] = {
    {Transport::kNone, v1::TRANSPORT_NONE}, {Transport::kTcp, v1::TRANSPORT_TCP}, {Transport::kNccl, v1::TRANSPORT_NCCL}};

v1::Transport ToProto(Transport transport) {
  for (const TransportRow& row : kTransports) {
    if (row.plain == transport) return row.wire;
  }
  return v1::TRANSPORT_UNSPECIFIED;
}

std::optional<Transport> FromProto(v1::Transport transport) {
  for (const TransportRow& row : kTransports) {
    if (row.wire == transport) return row.plain;
  }
  return std::nullopt;
}

}  // namespace

v1::TransportUse ToProto(const TransportUse& use) {
  v1::TransportUse proto;
  if (use.group) proto.set_group(*use.group);
  for (const DeviceId& device : use.devices) proto.add_devices(device.value());
  proto.set_transport(ToProto(use.transport));
  proto.set_why_not_nccl(use.why_not_nccl);
  if (use.planned) proto.set_planned(ToProto(*use.planned));
  if (use.nccl_links) {
    v1::NcclLinks& links = *proto.mutable_nccl_links();
    for (const std::string& kind : use.nccl_links->kinds) links.add_kinds(kind);
    for (const std::string& interface : use.nccl_links->interfaces) links.add_interfaces(interface);
    links.set_channels(use.nccl_links->channels);
  }
  return proto;
}

std::vector<TransportUse> FromProto(const google::protobuf::RepeatedPtrField<v1::TransportUse>& uses) {
  std::vector<TransportUse> out;
  for (const v1::TransportUse& proto : uses) {
    const std::optional<Transport> transport = FromProto(proto.transport());
    if (!transport) continue;
    TransportUse use;
    if (proto.has_group()) use.group = proto.group();
    for (const std::string& device : proto.devices()) use.devices.emplace_back(device);
    use.transport = *transport;
    use.why_not_nccl = proto.why_not_nccl();
    if (proto.has_planned()) use.planned = FromProto(proto.planned());
    if (proto.has_nccl_links()) {
      const v1::NcclLinks& links = proto.nccl_links();
      use.nccl_links = NcclLinks{
          {links.kinds().begin(), links.kinds().end()}, {links.interfaces().begin(), links.interfaces().end()}, links.channels()};
    }
    out.push_back(std::move(use));
  }
  return out;
}

}  // namespace motley::wire
