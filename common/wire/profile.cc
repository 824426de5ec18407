#include "common/wire/profile.h"

#include <algorithm>
#include <cmath>

#include "common/wire/both_ways.h"

namespace motley::wire {
namespace {

WIRE_MESSAGE(v1::ComputePoint, ComputePoint) {
  WIRE_FIELD(microbatch, plain.microbatch);
  WIRE_FIELD(forward_seconds, plain.forward_seconds);
  WIRE_FIELD(backward_seconds, plain.backward_seconds);
  WIRE_FIELD(saved_bytes, plain.saved_bytes);
  WIRE_FIELD(workspace_bytes, plain.workspace_bytes);
  WIRE_FIELD(backward_input_seconds, plain.backward_input_seconds);
  WIRE_FIELD(backward_weight_seconds, plain.backward_weight_seconds);
  WIRE_FIELD(part_forward_seconds, plain.part_forward_seconds);
  WIRE_FIELD(part_backward_seconds, plain.part_backward_seconds);
  WIRE_FIELD(forward_workspace_bytes, plain.forward_workspace_bytes);
}

WIRE_MESSAGE(v1::UnitProfile, UnitProfile) {
  WIRE_PARTS(points, plain.points);
  WIRE_FIELD(part, plain.part);
}

WIRE_MESSAGE(v1::CollectivePoint, CollectivePoint) {
  WIRE_FIELD(bytes, plain.bytes);
  WIRE_FIELD(skew, plain.skew);
  WIRE_FIELD(all_gather_seconds, plain.all_gather_seconds);
  WIRE_FIELD(reduce_scatter_seconds, plain.reduce_scatter_seconds);
}

WIRE_MESSAGE(v1::MeasuredLink, MeasuredLink) {
  WIRE_FIELD(from, plain.from);
  WIRE_FIELD(to, plain.to);
  WIRE_FIELD(latency_seconds, plain.latency_seconds);
  WIRE_FIELD(bytes_per_second, plain.bytes_per_second);
}

WIRE_MESSAGE(v1::Overlap, Overlap) {
  WIRE_FIELD(compute, plain.compute);
  WIRE_FIELD(collectives, plain.collectives);
}

}  // namespace

WIRE_MESSAGE(v1::MemoryTrial, MemoryTrial) {
  WIRE_FIELD(samples, plain.samples);
  WIRE_FIELD(seconds, plain.seconds);
  WIRE_FIELD(peak_bytes, plain.peak_bytes);
}

WIRE_MESSAGE(v1::CardLoad, CardLoad) {
  WIRE_FIELD(sm_clock_mhz, plain.sm_clock_mhz);
  WIRE_FIELD(watts, plain.watts);
  WIRE_FIELD(power_limit_watts, plain.power_limit_watts);
  WIRE_FIELD(at_power_limit, plain.at_power_limit);
  WIRE_FIELD(slowed_by_heat, plain.slowed_by_heat);
  WIRE_FIELD(slowed_by_hardware, plain.slowed_by_hardware);
  if constexpr (!Way::kWrites) {
    constexpr int64_t kMost = 1000000;  // as Motley's form of profiles reads it
    plain.sm_clock_mhz = std::clamp<int64_t>(plain.sm_clock_mhz, 0, kMost);
    plain.watts = std::isfinite(plain.watts) ? std::clamp<double>(plain.watts, 0, kMost) : 0;
    plain.power_limit_watts = std::clamp<int64_t>(plain.power_limit_watts, 0, kMost);
  }
}

WIRE_MESSAGE(v1::ComputeProfile, ComputeProfile) {
  WIRE_FIELD(device_id, plain.device);
  WIRE_FIELD(digest, plain.digest);
  WIRE_PART(embedding, plain.embedding);
  WIRE_PART(layer, plain.layer);
  WIRE_PART(head, plain.head);
  WIRE_FIELD(optimizer_seconds_per_element, plain.optimizer_seconds_per_element);
  WIRE_FIELD(step_overhead_seconds, plain.step_overhead_seconds);
  WIRE_FIELD(context_bytes, plain.context_bytes);
  WIRE_FIELD(profile_seconds, plain.profile_seconds);
  if (!Way::kWrites || plain.load != CardLoad()) WIRE_PART(load, plain.load);
  WIRE_FIELD(cut_short, plain.cut_short);
  WIRE_FIELD(attention, plain.attention);
}

WIRE_MESSAGE(v1::CollectiveProfile, CollectiveProfile) {
  WIRE_LIST(device_ids, plain.devices);
  WIRE_FIELD(digest, plain.digest);
  WIRE_PARTS(points, plain.points);
  WIRE_PARTS(links, plain.links);
  WIRE_PARTS(overlap, plain.overlap);
  WIRE_FIELD(barrier_seconds, plain.barrier_seconds);
  WIRE_FIELD(profile_seconds, plain.profile_seconds);
}

}  // namespace motley::wire
