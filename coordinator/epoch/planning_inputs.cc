#include "coordinator/epoch/planning_inputs.h"

#include <google/protobuf/util/json_util.h>

#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/wire/job.h"
#include "planner/cluster/cluster_text.h"
#include "planner/live/job_request.h"

namespace motley::coordinator {

absl::StatusOr<v1::GetPlanningInputsResponse> PlanningInputsOf(const planner::LiveInputs& inputs, const JobConfig& config) {
  v1::GetPlanningInputsResponse out;
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape model, ResolveModel(config));
  out.set_cluster_toml(planner::ToToml(inputs.cluster));
  out.set_profile_json(planner::ToJson(inputs.profile));
  out.set_model_name(inputs.model_name);
  out.set_model_config_json(ToHfConfig(model));
  out.set_global_batch(config.training.global_batch_size);
  out.set_seq_len(config.training.seq_len);
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(config.training));
  out.set_dtype(std::string(DTypeName(precision.compute)));
  out.set_steps_in_turn(planner::CheckStepsInTurn(config.training, precision).ok());
  *out.mutable_planner() = wire::ToProto(config).planner();
  out.mutable_planner()->clear_plan_json();
  return out;
}

std::string ToJson(const v1::GetPlanningInputsResponse& inputs) {
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(inputs, &json);
  if (!status.ok()) LogError(std::string(status.message()));
  return json;
}

v1::GetPlanningInputsResponse PlanningInputsFromJson(const std::string& json) {
  v1::GetPlanningInputsResponse inputs;
  if (json.empty()) return inputs;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &inputs, options);
  if (!status.ok()) LogError(std::string(status.message()));
  return inputs;
}

}  // namespace motley::coordinator
