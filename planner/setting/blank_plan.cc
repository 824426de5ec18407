#include "planner/setting/blank_plan.h"

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
  return plan;
}

}  // namespace motley::planner
