#include "common/wire/profile.h"

#include <algorithm>
#include <cmath>

namespace motley::wire {
namespace {

void Pack(const UnitProfile& unit, v1::UnitProfile* proto) {
  for (const ComputePoint& point : unit.points) {
    v1::ComputePoint* out = proto->add_points();
    out->set_microbatch(point.microbatch);
    out->set_forward_seconds(point.forward_seconds);
    out->set_backward_seconds(point.backward_seconds);
    out->set_saved_bytes(point.saved_bytes);
    out->set_workspace_bytes(point.workspace_bytes);
    out->set_backward_input_seconds(point.backward_input_seconds);
    out->set_backward_weight_seconds(point.backward_weight_seconds);
    out->set_part_forward_seconds(point.part_forward_seconds);
    out->set_part_backward_seconds(point.part_backward_seconds);
    out->set_forward_workspace_bytes(point.forward_workspace_bytes);
  }
  proto->set_part(unit.part);
}

UnitProfile Unpack(const v1::UnitProfile& proto) {
  UnitProfile unit;
  for (const v1::ComputePoint& point : proto.points()) {
    unit.points.push_back({point.microbatch(), point.forward_seconds(), point.backward_seconds(), point.saved_bytes(),
                           point.workspace_bytes(), point.backward_input_seconds(), point.backward_weight_seconds(),
                           point.part_forward_seconds(), point.part_backward_seconds(), point.forward_workspace_bytes()});
  }
  unit.part = proto.part();
  return unit;
}

}  // namespace

v1::CardLoad ToProto(const CardLoad& load) {
  v1::CardLoad proto;
  proto.set_sm_clock_mhz(load.sm_clock_mhz);
  proto.set_watts(load.watts);
  proto.set_power_limit_watts(load.power_limit_watts);
  proto.set_at_power_limit(load.at_power_limit);
  proto.set_slowed_by_heat(load.slowed_by_heat);
  proto.set_slowed_by_hardware(load.slowed_by_hardware);
  return proto;
}

CardLoad FromProto(const v1::CardLoad& proto) {
  constexpr int64_t kMost = 1000000;  // as Motley's form of profiles reads it
  const double watts = std::isfinite(proto.watts()) ? std::clamp<double>(proto.watts(), 0, kMost) : 0;
  return {std::clamp<int64_t>(proto.sm_clock_mhz(), 0, kMost),
          watts,
          std::clamp<int64_t>(proto.power_limit_watts(), 0, kMost),
          proto.at_power_limit(),
          proto.slowed_by_heat(),
          proto.slowed_by_hardware()};
}

v1::ComputeProfile ToProto(const ComputeProfile& profile) {
  v1::ComputeProfile proto;
  proto.set_device_id(profile.device.value());
  proto.set_digest(profile.digest);
  Pack(profile.embedding, proto.mutable_embedding());
  Pack(profile.layer, proto.mutable_layer());
  Pack(profile.head, proto.mutable_head());
  proto.set_optimizer_seconds_per_element(profile.optimizer_seconds_per_element);
  proto.set_step_overhead_seconds(profile.step_overhead_seconds);
  proto.set_context_bytes(profile.context_bytes);
  proto.set_profile_seconds(profile.profile_seconds);
  if (profile.load != CardLoad()) *proto.mutable_load() = ToProto(profile.load);
  proto.set_cut_short(profile.cut_short);
  return proto;
}

ComputeProfile FromProto(const v1::ComputeProfile& proto) {
  ComputeProfile profile;
  profile.device = DeviceId(proto.device_id());
  profile.digest = proto.digest();
  profile.embedding = Unpack(proto.embedding());
  profile.layer = Unpack(proto.layer());
  profile.head = Unpack(proto.head());
  profile.optimizer_seconds_per_element = proto.optimizer_seconds_per_element();
  profile.step_overhead_seconds = proto.step_overhead_seconds();
  profile.context_bytes = proto.context_bytes();
  profile.profile_seconds = proto.profile_seconds();
  profile.load = FromProto(proto.load());
  profile.cut_short = proto.cut_short();
  return profile;
}

v1::CollectiveProfile ToProto(const CollectiveProfile& profile) {
  v1::CollectiveProfile proto;
  for (const DeviceId& device : profile.devices) proto.add_device_ids(device.value());
  proto.set_digest(profile.digest);
  for (const CollectivePoint& point : profile.points) {
    v1::CollectivePoint* out = proto.add_points();
    out->set_bytes(point.bytes);
    out->set_skew(point.skew);
    out->set_all_gather_seconds(point.all_gather_seconds);
    out->set_reduce_scatter_seconds(point.reduce_scatter_seconds);
  }
  for (const MeasuredLink& link : profile.links) {
    v1::MeasuredLink* out = proto.add_links();
    out->set_from(link.from);
    out->set_to(link.to);
    out->set_latency_seconds(link.latency_seconds);
    out->set_bytes_per_second(link.bytes_per_second);
  }
  for (const Overlap& overlap : profile.overlap) {
    v1::Overlap* out = proto.add_overlap();
    out->set_compute(overlap.compute);
    out->set_collectives(overlap.collectives);
  }
  proto.set_barrier_seconds(profile.barrier_seconds);
  proto.set_profile_seconds(profile.profile_seconds);
  return proto;
}

CollectiveProfile FromProto(const v1::CollectiveProfile& proto) {
  CollectiveProfile profile;
  for (const std::string& device : proto.device_ids()) profile.devices.emplace_back(device);
  profile.digest = proto.digest();
  for (const v1::CollectivePoint& point : proto.points()) {
    profile.points.push_back({point.bytes(), point.skew(), point.all_gather_seconds(), point.reduce_scatter_seconds()});
  }
  for (const v1::MeasuredLink& link : proto.links()) {
    profile.links.push_back({link.from(), link.to(), link.latency_seconds(), link.bytes_per_second()});
  }
  for (const v1::Overlap& overlap : proto.overlap()) profile.overlap.push_back({overlap.compute(), overlap.collectives()});
  profile.barrier_seconds = proto.barrier_seconds();
  profile.profile_seconds = proto.profile_seconds();
  return profile;
}

}  // namespace motley::wire
