#include "coordinator/epoch/contexts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/memory_limits.h"
#include "coordinator/state/measured_speed.h"
#include "planner/util/quantity_text.h"

namespace motley::coordinator {
namespace {

// The device's stored profile with at least `bytes` as its context.
absl::Status Correct(Core& core, const DeviceDescription& device, int64_t bytes, Batch* batch) {
  const JobConfig& config = core.state.jobs.at(core.state.run->job).config;
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape shape, ResolveModel(config));
  MOTLEY_ASSIGN_OR_RETURN(ComputeProfile profile, StoredProfile(core, config, device));
  profile.context_bytes = std::max(profile.context_bytes, bytes);  // devices that are alike have one profile
  MeasuredSpeed speed = SpeedOf(profile, shape, config.training.seq_len);
  speed.model = ModelName(config.model);
  batch->compute_profiles.emplace_back(std::move(profile), speed);
  return absl::OkStatus();
}

}  // namespace

void OnContext(Core& core, const RankRun& rank, int64_t measured_bytes) {
  JobRun& run = *core.state.run;
  const int64_t above = measured_bytes - rank.planned_context_bytes;
  if (above <= 0 || rank.planned_context_bytes == 0 || measured_bytes > rank.capacity_bytes) return;
  const auto device =
      std::find_if(run.considered.begin(), run.considered.end(), [&](const auto& d) { return d.id == rank.device; });
  if (device == run.considered.end()) return;
  const std::string& card = device->card.name.empty() ? device->model : device->card.name;
  const std::string found = absl::StrCat(rank.device.value(), " (", card, ") holds ", planner::BytesText(measured_bytes),
                                         " beside tensors, the plan counted ", planner::BytesText(rank.planned_context_bytes));
  const bool again = run.context.PlansAgain(rank.device, measured_bytes);
  Batch batch;
  EventRecord event;
  event.job = run.job;
  event.kind = kind::kContextAbovePlan;
  event.node = NodeOf(rank.device);
  event.device = rank.device;
  event.epoch = core.state.jobs.at(run.job).epoch;
  event.message =
      absl::StrCat(found, again ? ": the job is planned again with that" : ": the job was planned again for it before");
  absl::Status status;
  if (again) status = Correct(core, *device, rank.card_context_bytes + above, &batch);
  batch.events.push_back(std::move(event));
  if (status.ok()) status = core.journal.Commit(batch);
  if (!status.ok()) {
    LogError(absl::StrCat(found, ", which could not be noted: ", std::string(status.message())));
  } else if (again) {
    run.context.End(found);
  }
}

}  // namespace motley::coordinator
