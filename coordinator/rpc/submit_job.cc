#include "coordinator/rpc/submit_job.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/clean_text.h"
#include "common/status_macros.h"
#include "common/wire/job.h"
#include "coordinator/jobs/epoch_driver.h"
#include "coordinator/rpc/job_size.h"
#include "coordinator/rpc/views.h"
#include "coordinator/store/json.h"
#include "planner/plan.h"

namespace motley::coordinator {
namespace {

absl::Status CheckId(const std::string& id) {
  const bool good = !id.empty() && id.size() <= 63 && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("job_id must be 1 to 63 of a-z, 0-9 and '-', got ", Quoted(id)));
}

absl::Status CheckConfig(const JobConfig& config) {
  MOTLEY_RETURN_IF_ERROR(Validate(config));
  MOTLEY_RETURN_IF_ERROR(ResolveModel(config).status());
  if (config.planner.plan_json.empty()) return absl::OkStatus();
  absl::StatusOr<planner::Plan> plan = planner::PlanFromJson(config.planner.plan_json);
  if (plan.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("planner.plan_json: ", std::string(plan.status().message())));
}

}  // namespace

absl::Status SubmitJob(Core& core, const v1::SubmitJobRequest& request, v1::SubmitJobResponse* response) {
  MOTLEY_RETURN_IF_ERROR(CheckId(request.job_id()));
  JobRecord job;
  job.id = JobId(request.job_id());
  job.config = wire::FromProto(request.spec());
  MOTLEY_RETURN_IF_ERROR(CheckJobSize(job.config));
  MOTLEY_RETURN_IF_ERROR(CheckConfig(job.config));
  if (auto it = core.state.jobs.find(job.id); it != core.state.jobs.end()) {
    if (ConfigToJson(it->second.config) != ConfigToJson(job.config)) {
      return absl::AlreadyExistsError(
          absl::StrCat("job_id '", job.id.value(), "' is used by a job with another body; choose another id"));
    }
    *response->mutable_job() = View(it->second);
    return absl::OkStatus();
  }
  MOTLEY_RETURN_IF_ERROR(CheckRoomForJob(core.state, job.config, core.config.waiting_job_bytes));
  job.submitted_unix_ms = core.journal.UnixMs();
  // A job of this id that the store lost may have left ranks behind.
  if (auto seen = core.state.foreign_epochs.find(job.id); seen != core.state.foreign_epochs.end()) job.epoch = seen->second;
  job.reason = "submitted";
  Batch batch;
  EventRecord event;
  event.job = job.id;
  event.kind = kind::kJobState;
  event.message = "submitted";
  batch.jobs.push_back(job);
  batch.events.push_back(std::move(event));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  JobRecord& stored = core.state.jobs[job.id] = std::move(job);
  Drive(core);
  *response->mutable_job() = View(stored);
  return absl::OkStatus();
}

}  // namespace motley::coordinator
