#include "worker/engine/transport/link_pacer.h"

#include <cmath>

namespace motley::engine {
namespace {

int64_t DurationNs(int64_t bytes, double bytes_per_second) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / bytes_per_second * 1e9));
}

}  // namespace

LinkPacer::LinkPacer(const DeviceDescription& device, const std::vector<DeviceId>& devices, int rank, LinkClock& clock)
    : latency_ns_(absl::ToInt64Nanoseconds(device.link_latency)), clock_(clock) {
  const int world = static_cast<int>(devices.size());
  const NodeName node = NodeOf(devices[rank]);
  int ordinal = 0;  // among the node's devices, so that ranks of one node use different links
  for (int r = 0; r < rank; ++r) ordinal += NodeOf(devices[r]) == node;
  const int own = 1 + ordinal % (LinkClock::kMaxLinks - 1);
  const bool right_is_far = NodeOf(devices[(rank + 1) % world]) != node;
  const bool left_is_far = NodeOf(devices[(rank + world - 1) % world]) != node;
  auto add = [&](std::vector<Hop>& hops, int link, double rate) {
    if (rate <= 0) return;
    hops.push_back({link, rate});
    if (slowest_ == 0 || rate < slowest_) slowest_ = rate;
  };
  add(out_, own, device.link_bytes_per_second);
  if (right_is_far) add(out_, LinkClock::kNic, device.node_link_bytes_per_second);
  if (left_is_far) add(in_, LinkClock::kNic, device.node_link_bytes_per_second);
  add(in_, own, device.link_bytes_per_second);
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
