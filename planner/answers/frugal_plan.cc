// The plan of fits.h that needs the least memory without splitting layers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/answers/fits.h"
#include "planner/costs/memory_model.h"
#include "planner/plan/placement.h"
#include "planner/setting/blank_plan.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {

RankDuty FrugalDuty(const Setting& setting, int device, double share, bool offload) {
  RankDuty duty;
  duty.kind = setting.KindOf(device);
  duty.layers = setting.workload.model.num_layers;
  duty.largest_ministage = 1;
  duty.ministages = duty.layers;
  duty.embedding = duty.head = true;
  duty.schedule = ScheduleFamily::k1F1B;
  duty.share = share;
  duty.recompute = OpSet::All();
  duty.group_size = setting.num_devices();
  duty.offload_optimizer = offload;
  return duty;
}

namespace {

// Bytes that are free beside everything but the state.
int64_t Headroom(const Setting& setting, int device, int64_t samples, bool offload) {
  const MemoryByPurpose fixed = MemoryOf(setting.costs, FrugalDuty(setting, device, 0, offload), samples, 1, 0);
  return setting.UsableBytes(device) - fixed.total();
}

}  // namespace

absl::StatusOr<Plan> FrugalPlan(const Setting& setting, bool offload) {
  struct Member {
    int device = 0;
    int64_t free_bytes = 0;
    bool computes = false;
  };
  std::vector<Member> members;
  Plan plan = BlankPlan(setting, "frugal", ScheduleFamily::k1F1B);
  int64_t computing = 0, best_missing = 0;
  int best = 0;
  for (int d = 0; d < setting.num_devices(); ++d) {
    const int64_t storing = Headroom(setting, d, 0, offload), working = Headroom(setting, d, 1, offload);
    if (d == 0 || storing > best_missing) best = d, best_missing = storing;
    const DeviceId& id = setting.cluster.devices[d].id;
    if (storing <= 0) {
      plan.unused.push_back({id, absl::StrCat("context and buffers alone lack ", BytesText(-storing))});
      continue;
    }
    members.push_back({d, working > 0 ? working : storing, working > 0});
    computing += working > 0;
  }
  if (members.empty() || computing == 0) {
    const std::string& name = setting.cluster.devices[best].id.value();
    const int64_t missing = -Headroom(setting, best, 1, offload);
    return absl::ResourceExhaustedError(
        absl::StrCat("no device holds context, buffers and one sample: ", name, " lacks ", BytesText(missing)));
  }
  double total = 0;
  for (const Member& member : members) total += static_cast<double>(member.free_bytes);
  StagePlan stage;
  for (int64_t layer = 0; layer < setting.workload.model.num_layers; ++layer) stage.ministages.push_back({layer, layer});
  int64_t left = setting.workload.global_batch;
  for (const Member& member : members) {
    RankPlan rank;
    rank.device = setting.cluster.devices[member.device].id;
    rank.device_model = setting.cluster.kinds[setting.KindOf(member.device)].name;
    rank.recompute = OpSet::All();
    rank.shard_ratio = static_cast<double>(member.free_bytes) / total;
    rank.offload_optimizer = offload;
    int64_t batch = 0;
    if (member.computes) {
      batch = (left + computing - 1) / computing;
      left -= batch;
      --computing;
    }
    rank.predicted.memory = MemoryOf(setting.costs, FrugalDuty(setting, member.device, rank.shard_ratio, offload), batch, 1, 0);
    rank.predicted.peak_bytes = rank.predicted.memory.total();
    stage.units.push_back({{rank}, Microbatches(batch, 1)});
  }
  plan.pipelines = {{{std::move(stage)}}};
  return plan;
}

}  // namespace motley::planner
