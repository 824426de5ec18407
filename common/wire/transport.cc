#include "common/wire/transport.h"

#include <optional>

#include "common/wire/both_ways.h"

namespace motley::wire {
namespace {

constexpr EnumRow<Transport, v1::Transport> kTransports[] = {
    {Transport::kNone, v1::TRANSPORT_NONE}, {Transport::kTcp, v1::TRANSPORT_TCP}, {Transport::kNccl, v1::TRANSPORT_NCCL}};

v1::Transport WireTransport(Transport transport) { return WireOf(kTransports, transport).value_or(v1::TRANSPORT_UNSPECIFIED); }

WIRE_MESSAGE(v1::NcclLinks, NcclLinks) {
  WIRE_LIST(kinds, plain.kinds);
  WIRE_LIST(interfaces, plain.interfaces);
  WIRE_FIELD(channels, plain.channels);
}

WIRE_FIELDS(v1::TransportUse, TransportUse) {
  WIRE_OPTIONAL(group, plain.group);
  WIRE_LIST(devices, plain.devices);
  WIRE_FIELD(why_not_nccl, plain.why_not_nccl);
}

}  // namespace

v1::TransportUse ToProto(const TransportUse& use) {
  v1::TransportUse proto;
  ToWire way;
  Fields(way, proto, use);
  proto.set_transport(WireTransport(use.transport));
  if (use.planned) proto.set_planned(WireTransport(*use.planned));
  if (use.nccl_links) *proto.mutable_nccl_links() = ToProto(*use.nccl_links);
  return proto;
}

std::vector<TransportUse> FromProto(const google::protobuf::RepeatedPtrField<v1::TransportUse>& uses) {
  std::vector<TransportUse> out;
  for (const v1::TransportUse& proto : uses) {
    const std::optional<Transport> transport = PlainOf(kTransports, proto.transport());
    if (!transport) continue;
    TransportUse& use = out.emplace_back();
    FromWire way;
    Fields(way, proto, use);
    use.transport = *transport;
    if (proto.has_planned()) use.planned = PlainOf(kTransports, proto.planned());
    if (proto.has_nccl_links()) use.nccl_links = FromProto(proto.nccl_links());
  }
  return out;
}

}  // namespace motley::wire
