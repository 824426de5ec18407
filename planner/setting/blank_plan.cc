#include "planner/setting/blank_plan.h"

#include <set>

#include "planner/plan/each_rank.h"

namespace motley::planner {

Plan BlankPlan(const Setting& setting, const std::string& strategy, ScheduleFamily schedule) {
  Plan plan;
  plan.strategy = strategy;
  plan.global_batch = setting.workload.global_batch;
  plan.seq_len = setting.workload.seq_len;
  plan.dtype = setting.workload.dtype;
  plan.schedule = schedule;
  plan.cluster = setting.cluster.name;
  plan.cluster_file = setting.cluster.file;
  plan.model = setting.workload.model_name;
  plan.unused = setting.excluded;
  return plan;
}

RankPlan RankOn(const Setting& setting, int device) {
  RankPlan rank;
  rank.device = setting.cluster.devices[device].id;
  rank.device_model = setting.cluster.kinds[setting.KindOf(device)].name;
  return rank;
}

std::vector<UnusedDevice> DevicesBeside(const Setting& setting, const Plan& plan, const std::string& because) {
  std::set<DeviceId> used;
  ForEachRank(plan, [&used](const RankPlan& rank) { used.insert(rank.device); });
  std::vector<UnusedDevice> beside;
  for (const ClusterDevice& device : setting.cluster.devices) {
    if (!used.contains(device.id)) beside.push_back({device.id, because});
  }
  return beside;
}

}  // namespace motley::planner
