#include "coordinator/rpc/get_plan.h"

#include "common/status_macros.h"
#include "coordinator/rpc/find_job.h"

namespace motley::coordinator {

absl::Status GetPlan(Core& core, const v1::GetPlanRequest& request, v1::GetPlanResponse* response) {
  MOTLEY_ASSIGN_OR_RETURN(const JobRecord* job, FindJob(core, request.job_id()));
  MOTLEY_ASSIGN_OR_RETURN(PlanRow plan, core.store.FindPlan(job->id));
  response->set_epoch(plan.epoch.value());
  response->set_plan_json(std::move(plan.plan_json));
  response->set_plan_text(std::move(plan.plan_text));
  response->set_explanation(std::move(plan.explanation));
  response->set_trace_json(std::move(plan.trace_json));
  for (std::string& program : plan.programs) response->add_programs(std::move(program));
  return absl::OkStatus();
}

}  // namespace motley::coordinator
