#include "coordinator/rpc/get_plan.h"

#include <google/protobuf/util/field_mask_util.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "common/wire/transport.h"
#include "coordinator/epoch/planning_inputs.h"
#include "coordinator/rpc/find_job.h"
#include "coordinator/state/transports.h"

namespace motley::coordinator {
namespace {

absl::Status CheckFields(const google::protobuf::FieldMask& fields) {
  for (const std::string& path : fields.paths()) {
    if (google::protobuf::util::FieldMaskUtil::IsValidPath<v1::GetPlanResponse>(path)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("fields: a plan has no ", Quoted(path),
                     "; it has epoch, plan_json, plan_text, explanation, trace_json, programs, inputs and transports"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status GetPlan(Core& core, const v1::GetPlanRequest& request, v1::GetPlanResponse* response) {
  MOTLEY_RETURN_IF_ERROR(CheckFields(request.fields()));
  MOTLEY_ASSIGN_OR_RETURN(const JobRecord* job, FindJob(core, request.job_id()));
  MOTLEY_ASSIGN_OR_RETURN(PlanRow plan, core.store.FindPlan(job->id));
  response->set_epoch(plan.epoch.value());
  response->set_plan_json(std::move(plan.plan_json));
  response->set_plan_text(std::move(plan.plan_text));
  response->set_explanation(std::move(plan.explanation));
  response->set_trace_json(std::move(plan.trace_json));
  for (std::string& program : plan.programs) response->add_programs(std::move(program));
  if (!plan.inputs.empty()) *response->mutable_inputs() = PlanningInputsFromJson(plan.inputs);
  if (core.state.run && core.state.run->job == job->id && plan.epoch == job->epoch) {
    for (const TransportUse& use : PlannedTransports(*core.state.run)) *response->add_transports() = wire::ToProto(use);
  }
  if (!request.fields().paths().empty()) google::protobuf::util::FieldMaskUtil::TrimMessage(request.fields(), response);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
