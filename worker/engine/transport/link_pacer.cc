#include "worker/engine/transport/link_pacer.h"

#include <cmath>

namespace motley::engine {
namespace {

int64_t DurationNs(int64_t bytes, double bytes_per_second) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / bytes_per_second * 1e9));
}

}  // namespace

LinkPacer::LinkPacer(const DeviceDescription& device, const std::vector<DeviceId>& devices, int rank, const Path& path,
                     LinkClock& clock)
    : clock_(clock) {
  const NodeName node = NodeOf(devices[rank]);
  int ordinal = 0;  // among the node's devices, so that ranks of one node use different links
  for (int r = 0; r < rank; ++r) ordinal += NodeOf(devices[r]) == node;
  const Hop own = {1 + ordinal % (LinkClock::kMaxDeviceLinks - 1), device.link_bytes_per_second};
  const Hop nic = {LinkClock::kNic, device.node_link_bytes_per_second};
  const auto add = [](std::vector<Hop>& hops, const Hop& hop) {
    if (hop.bytes_per_second > 0) hops.push_back(hop);
  };
  if (path.to) {
    latency_ns_ = absl::ToInt64Nanoseconds(device.link_latency);
    add(out_, own);
    if (NodeOf(devices[*path.to]) != node) add(out_, nic);
  }
  if (path.from) {
    if (NodeOf(devices[*path.from]) != node) add(in_, nic);
    add(in_, own);
  }
}

LinkClock::Slot LinkPacer::ReserveOut(int64_t bytes, int64_t ready_ns) {
  LinkClock::Slot slot{ready_ns, ready_ns};
  for (const Hop& hop : out_) {
    slot = clock_.ReserveAfter(hop.link, Direction::kEgress, DurationNs(bytes, hop.bytes_per_second), slot);
  }
  return {slot.begin_ns + latency_ns_, slot.end_ns + latency_ns_};
}

LinkClock::Slot LinkPacer::ReserveIn(int64_t bytes, const LinkClock::Slot& sent) {
  LinkClock::Slot slot = sent;
  for (const Hop& hop : in_) {
    slot = clock_.ReserveAfter(hop.link, Direction::kIngress, DurationNs(bytes, hop.bytes_per_second), slot);
  }
  return slot;
}

}  // namespace motley::engine
