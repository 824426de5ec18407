#include "coordinator/epoch/memory_limits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/count.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/session/profile.h"
#include "coordinator/state/measured_speed.h"
#include "coordinator/state/probe.h"
#include "planner/util/quantity_text.h"

namespace motley::coordinator {
namespace {

constexpr double kLeastCut = 0.95;

absl::StatusOr<ComputeProfile> ProfileOf(const Core& core, const DeviceDescription& device) {
  const JobConfig& config = core.state.jobs.at(core.state.run->job).config;
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape shape, ResolveModel(config));
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(config.training));
  const std::string digest = ComputeProfileDigest(device, shape, config.training.seq_len, precision.compute);
  MOTLEY_ASSIGN_OR_RETURN(ComputeProfile profile, core.store.FindComputeProfile(digest));
  profile.device = device.id;
  profile.digest = digest;
  return profile;
}

absl::Status Commit(Core& core, ComputeProfile profile, EventRecord event) {
  const JobConfig& config = core.state.jobs.at(core.state.run->job).config;
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape shape, ResolveModel(config));
  MeasuredSpeed speed = SpeedOf(profile, shape, config.training.seq_len);
  speed.model = ModelName(config.model);
  Batch batch;
  batch.compute_profiles.emplace_back(std::move(profile), speed);
  batch.events.push_back(std::move(event));
  return core.journal.Commit(batch);
}

// What was found, in words.
std::string Found(const RankRun& rank, const MemoryShortage& shortage, int64_t held) {
  std::string text = absl::StrCat(rank.device.value(), " ran out of memory");
  if (held > 0) absl::StrAppend(&text, " with ", planner::BytesText(held), " held");
  if (shortage.asked_bytes > 0)
    absl::StrAppend(&text, " when ", planner::BytesText(shortage.asked_bytes), " more were asked for");
  if (rank.planned.total() > 0) absl::StrAppend(&text, "; the plan counted ", PurposesText(rank.planned));
  return text;
}

}  // namespace

int64_t CorrectedLimit(int64_t before, int64_t held, int64_t peak) {
  double limit = static_cast<double>(held > 0 ? held : before);
  if (peak > 0 && held > peak) limit = static_cast<double>(peak) * static_cast<double>(peak) / static_cast<double>(held);
  if (before > 0) limit = std::min(limit, kLeastCut * static_cast<double>(before));
  return static_cast<int64_t>(limit);
}

std::string PurposesText(const planner::MemoryByPurpose& memory) {
  std::vector<std::string> parts;
  const auto add = [&parts](const char* what, int64_t bytes) {
    if (bytes > 0) parts.push_back(absl::StrCat(what, " ", planner::BytesText(bytes)));
  };
  add("parameters", memory.parameters);
  add("gradients", memory.gradients);
  add("optimizer", memory.optimizer);
  add("gathered", memory.gathered);
  add("boundaries", memory.boundaries);
  add("saved", memory.saved);
  add("workspace", memory.workspace);
  add("context", memory.context);
  return absl::StrCat(planner::BytesText(memory.total()), parts.empty() ? "" : ": ", absl::StrJoin(parts, ", "));
}

void OnOutOfMemory(Core& core, const RankRun& rank, const RankReport& report) {
  JobRun& run = *core.state.run;
  const auto device = std::ranges::find(run.considered, rank.device, &DeviceDescription::id);
  if (device == run.considered.end()) return;
  const MemoryShortage shortage = report.shortage.value_or(MemoryShortage());
  // More than the device declares is not believed.
  const int64_t held = rank.capacity_bytes > 0 ? std::min(shortage.held_bytes, rank.capacity_bytes) : shortage.held_bytes;
  const std::string found = Found(rank, shortage, held);
  if (++run.memory_corrections[rank.device] > kMostMemoryCorrections) {
    const Failure failure{core.clock.Now(), FailureKind::kFailed, NodeOf(rank.device), rank.device, "", Fault::kMemory, ""};
    if (!BlamedNewcomers(core.state, run, failure).empty()) return;  // the job goes on without it
    run.memory_end = absl::StrCat(found, "; its limit was corrected ", Count(kMostMemoryCorrections, "time"), " before");
    return;
  }
  absl::StatusOr<ComputeProfile> profile = ProfileOf(core, *device);
  absl::Status status = profile.status();
  if (profile.ok()) {
    const int64_t before = profile->usable_bytes > 0 ? profile->usable_bytes : rank.capacity_bytes;
    profile->usable_bytes = CorrectedLimit(before, held, rank.planned.total());
    if (profile->usable_bytes == 0) {
      run.memory_end = absl::StrCat(found, "; how much it has nobody knows");
      return;
    }
    EventRecord event;
    event.job = run.job;
    event.kind = kind::kMemoryLimit;
    event.node = NodeOf(rank.device);
    event.device = rank.device;
    event.epoch = core.state.jobs.at(run.job).epoch;
    event.message =
        absl::StrCat(found, ". Plans count on ", planner::BytesText(profile->usable_bytes), " of it from now on",
                     before > 0 ? absl::StrCat(", after ", planner::BytesText(before)) : "", ", and the job is planned again");
    status = Commit(core, *std::move(profile), std::move(event));
  }
  if (!status.ok()) LogError(absl::StrCat(found, ", which could not be noted: ", std::string(status.message())));
}

}  // namespace motley::coordinator
