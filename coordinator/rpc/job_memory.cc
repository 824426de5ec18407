#include "coordinator/rpc/job_memory.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/memory_by_purpose.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/memory_limits.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/plan.h"

namespace motley::coordinator {
namespace {

using Bytes = std::optional<int64_t>;  // nothing: not known

constexpr char kDevice[] = "device", kHost[] = "host";

// Of a card the context is none of its allocator's.
bool IsKnown(MemoryPurpose purpose, const MeasuredMemory& measured) {
  switch (purpose) {
    case MemoryPurpose::kBoundaries:
    case MemoryPurpose::kSaved:
    case MemoryPurpose::kWorkspace:
    case MemoryPurpose::kContext:
      return measured.has_passes;
    default:
      return true;
  }
}

void Add(v1::RankMemory* rank, const char* tier, const char* purpose, Bytes planned, Bytes measured = {}, Bytes left = {}) {
  v1::MemoryUse* use = rank->add_uses();
  use->set_tier(tier);
  use->set_purpose(purpose);
  if (planned) use->set_planned_bytes(*planned);
  if (measured) use->set_measured_bytes(*measured);
  if (left) use->set_left_bytes(*left);
}

const DeviceDescription* FindDevice(const ClusterState& state, const DeviceId& id) {
  const auto node = state.nodes.find(NodeOf(id));
  if (node == state.nodes.end()) return nullptr;
  for (const DeviceDescription& device : node->second.description.devices) {
    if (device.id == id) return &device;
  }
  return nullptr;
}

// What a rank has of both tiers.
struct RankSight {
  MemoryByPurpose planned, most;              // at the peak, of each purpose its own
  HostMemoryByPurpose waits;                  // as planned
  const RankMemory* measured = nullptr;       // null: no step of this plan
  const DeviceDescription* device = nullptr;  // null: its node is not there
  int64_t usable_bytes = 0;                   // of the device, since a rank ran out of it; 0: all
  int64_t on_host = 0;                        // of all ranks of its node, as measured
};

// Each purpose's own most: those of passes are not there at one moment.
void AddPurposes(const RankSight& sight, v1::RankMemory* out) {
  const MeasuredMemory* const measured = sight.measured != nullptr && sight.measured->memory ? &*sight.measured->memory : nullptr;
  for (const MemoryPurposeTraits& purpose : kMemoryPurposes) {
    Bytes most;
    if (measured != nullptr && IsKnown(purpose.purpose, *measured)) most = measured->most.*purpose.bytes;
    Add(out, kDevice, purpose.name, sight.most.*purpose.bytes, most);
  }
}

void AddSums(const RankSight& sight, v1::RankMemory* out) {
  const MemoryByPurpose& planned = sight.planned;
  const bool there = sight.measured != nullptr && sight.measured->peak_bytes > 0;
  Bytes held_now, passes_now, tensors_now, left;
  if (there) {
    tensors_now = sight.measured->peak_bytes;
    if (sight.measured->held_bytes > 0) {
      held_now = sight.measured->held_bytes;
      passes_now = *tensors_now - *held_now;
    }
    const int64_t declared = sight.device == nullptr ? 0 : sight.device->memory_bytes;
    const int64_t capacity = sight.usable_bytes > 0 ? sight.usable_bytes : declared;  // 0: not limited
    if (capacity > 0) left = capacity - planned.context - *tensors_now;
  }
  Add(out, kDevice, "held", planned.held(), held_now);
  Add(out, kDevice, "passes", planned.passes(), passes_now);
  Add(out, kDevice, "tensors", planned.held() + planned.passes(), tensors_now, left);
}

void AddHost(const RankSight& sight, v1::RankMemory* out) {
  for (const HostPurposeTraits& purpose : kHostPurposes) {
    Bytes of_purpose;
    if (sight.measured != nullptr && sight.measured->memory) of_purpose = sight.measured->memory->host.*purpose.bytes;
    Add(out, kHost, purpose.name, sight.waits.*purpose.bytes, of_purpose);
  }
  Bytes measured, left;
  if (sight.measured != nullptr && sight.measured->peak_bytes > 0) {
    measured = sight.measured->host_bytes;
    const int64_t offered = sight.device == nullptr ? 0 : sight.device->node_host_memory_bytes;
    if (offered > 0) left = offered - sight.on_host;
  }
  Add(out, kHost, "waiting", sight.planned.host, measured, left);
}

// Returns it.
int64_t AddLimit(const Core& core, const JobRecord& job, const DeviceDescription* device, v1::RankMemory* out) {
  if (device == nullptr) return 0;
  out->set_memory_bytes(device->memory_bytes);
  const absl::StatusOr<ComputeProfile> profile = StoredProfile(core, job.config, *device);
  if (!profile.ok() || profile->usable_bytes == 0) return 0;
  out->set_usable_memory_bytes(profile->usable_bytes);
  out->set_memory_corrections(profile->memory_corrections);
  return profile->usable_bytes;
}

}  // namespace

absl::Status AddMemory(const Core& core, const JobRecord& job, v1::GetJobResponse* response) {
  MOTLEY_ASSIGN_OR_RETURN(const PlanRow row, core.store.FindPlan(job.id));
  MOTLEY_ASSIGN_OR_RETURN(const planner::Plan plan, planner::PlanFromJson(row.plan_json));
  std::vector<const planner::RankPlan*> ranks;
  planner::ForEachRank(plan, [&ranks](const planner::RankPlan& rank) { ranks.push_back(&rank); });
  const std::vector<RankMemory>& measured = job.last_step.ranks;
  const bool fresh = job.last_step.epoch == row.epoch && measured.size() == ranks.size();
  std::map<NodeName, int64_t> on_hosts;
  for (const RankMemory& rank : measured) on_hosts[NodeOf(rank.device)] += rank.host_bytes;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const DeviceId& id = ranks[r]->device;
    v1::RankMemory* out = response->add_memory();
    out->set_rank(static_cast<int32_t>(r));
    out->set_device(id.value());
    const planner::RankPrediction& planned = ranks[r]->predicted;
    const bool knows_most = planned.most != MemoryByPurpose{};
    RankSight sight{planned.memory,
                    knows_most ? planned.most : planned.memory,
                    planned.waits,
                    fresh ? &measured[r] : nullptr,
                    FindDevice(core.state, id),
                    0,
                    on_hosts[NodeOf(id)]};
    sight.usable_bytes = AddLimit(core, job, sight.device, out);
    AddPurposes(sight, out);
    AddSums(sight, out);
    AddHost(sight, out);
  }
  return absl::OkStatus();
}

}  // namespace motley::coordinator
