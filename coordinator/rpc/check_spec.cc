#include "coordinator/rpc/check_spec.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/job/job_input.h"
#include "coordinator/rpc/job_size.h"
#include "planner/live/job_request.h"

namespace motley::coordinator {

absl::Status CheckSpec(const JobConfig& config) {
  std::vector<std::string> problems;
  for (const absl::Status& status : {CheckJobSize(config), Validate(config)}) {
    if (!status.ok()) problems.push_back(std::string(status.message()));
  }
  JobConfig copy = config;  // the table points into a mutable value
  for (const InputPath& path : InputPaths(copy)) {
    if (!HerePath(*path.path)) continue;
    problems.push_back(
        absl::StrCat(path.key, ": ", Quoted(*path.path), " is of the machine that submits, from which 'motley submit' sends it"));
  }
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  if (const absl::StatusOr<ModelShape> model = ResolveModel(config); model.ok()) {
    const absl::Status planned = planner::CheckPlannerSection(config, *model);
    if (!planned.ok() && problems.empty()) code = planned.code();
    if (!planned.ok()) problems.push_back(std::string(planned.message()));
  } else if (!config.planner.plan_json.empty()) {
    const absl::Status plan = planner::PlanFromJson(config.planner.plan_json).status();
    if (!plan.ok()) problems.push_back(absl::StrCat("planner.plan_json: ", std::string(plan.message())));
  }
  return problems.empty() ? absl::OkStatus() : absl::Status(code, absl::StrJoin(problems, "\n"));
}

}  // namespace motley::coordinator
