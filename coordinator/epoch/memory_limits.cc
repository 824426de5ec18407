#include "coordinator/epoch/memory_limits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/count.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "coordinator/state/measured_speed.h"
#include "coordinator/state/probe.h"
#include "planner/live/memory_limits.h"
#include "planner/util/quantity_text.h"

namespace motley::coordinator {
namespace {

// What was found, in words.
std::string Found(const RankRun& rank, const MemoryShortage& shortage, int64_t held) {
  std::string text = absl::StrCat(rank.device.value(), " ran out of memory");
  if (held > 0) absl::StrAppend(&text, " with ", planner::BytesText(held), " held");
  if (shortage.asked_bytes > 0)
    absl::StrAppend(&text, " when ", planner::BytesText(shortage.asked_bytes), " more were asked for");
  if (rank.planned.total() > 0) absl::StrAppend(&text, "; the plan counted ", PurposesText(rank.planned));
  return text;
}

// All its corrections are made: the job ends, unless it goes on without the newcomer whose memory that is.
void EndFor(Core& core, const RankRun& rank, MemoryTier tier, std::string why) {
  JobRun& run = *core.state.run;
  const Failure failure{core.clock.Now(), FailureKind::kFailed, NodeOf(rank.device), rank.device, "", Fault::kMemory, ""};
  if (!BlamedNewcomers(core.state, run, failure).empty()) return;
  run.memory_end = std::move(why);
  run.memory_end_tier = tier;
}

EventRecord LimitEvent(const Core& core, const RankRun& rank, std::string message) {
  EventRecord event;
  event.job = core.state.run->job;
  event.kind = kind::kMemoryLimit;
  event.node = NodeOf(rank.device);
  event.device = rank.device;
  event.epoch = core.state.jobs.at(event.job).epoch;
  event.message = std::move(message);
  return event;
}

// The host has less than its node offers. What all the node's ranks keep there as planned was too much; what this one got, beside
// all that the others keep, is there.
void OnFullHost(Core& core, const RankRun& rank, const MemoryShortage& shortage) {
  JobRun& run = *core.state.run;
  const NodeName node = NodeOf(rank.device);
  const Epoch epoch = core.state.jobs.at(run.job).epoch;
  HostCorrections& corrections = run.host_corrections[node];
  if (corrections.newest == epoch) return;  // another rank of it said so
  corrections.newest = epoch;
  int64_t planned = 0;
  for (const RankRun& each : run.ranks) planned += NodeOf(each.device) == node ? each.planned_host_bytes : 0;
  const int64_t held = planned - rank.planned_host_bytes + shortage.held_bytes;
  const std::string found = absl::StrCat(
      "the host memory of ", node.value(), " ran out", held > 0 ? absl::StrCat(" with ", planner::BytesText(held), " held") : "",
      shortage.asked_bytes > 0
          ? absl::StrCat(" when ", rank.device.value(), " asked for ", planner::BytesText(shortage.asked_bytes))
          : "",
      "; the plan keeps ", planner::BytesText(planned), " there");
  if (++corrections.times > kMostMemoryCorrections)
    return EndFor(core, rank, MemoryTier::kHost,
                  absl::StrCat(found, "; what it offers was corrected ", Count(kMostMemoryCorrections, "time"), " before"));
  if (planned == 0) return EndFor(core, rank, MemoryTier::kHost, found);
  const int64_t limit = planner::CorrectedLimit(planned, held, 0);
  for (DeviceDescription& device : core.state.nodes.at(node).description.devices)
    device.node_host_memory_bytes = std::min(device.node_host_memory_bytes, limit);
  core.Emit(LimitEvent(core, rank,
                       absl::StrCat(found, ". Plans keep at most ", planner::BytesText(limit),
                                    " there until its worker starts again, and the job is planned again")));
}

}  // namespace

absl::StatusOr<std::string> ProfileDigestOf(const JobConfig& config, const DeviceDescription& device) {
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape shape, ResolveModel(config));
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(config.training));
  return ComputeProfileDigest(device, shape, config.training.seq_len, precision.compute);
}

absl::Status CommitProfile(Core& core, const JobConfig& config, ComputeProfile profile, EventRecord event) {
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape shape, ResolveModel(config));
  MeasuredSpeed speed = SpeedOf(profile, shape, config.training.seq_len);
  speed.model = ModelName(config.model);
  Batch batch;
  batch.compute_profiles.emplace_back(std::move(profile), speed);
  batch.events.push_back(std::move(event));
  const DeviceId device = batch.compute_profiles[0].first.device;
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  core.state.speeds[device] = speed;
  return absl::OkStatus();
}

absl::StatusOr<ComputeProfile> StoredProfile(const Core& core, const JobConfig& config, const DeviceDescription& device) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string digest, ProfileDigestOf(config, device));
  MOTLEY_ASSIGN_OR_RETURN(ComputeProfile profile, core.store.FindComputeProfile(digest));
  profile.device = device.id;
  profile.digest = digest;
  return profile;
}

std::string PurposesText(const planner::MemoryByPurpose& memory) {
  std::vector<std::string> parts;
  const auto add = [&parts](const char* what, int64_t bytes) {
    if (bytes > 0) parts.push_back(absl::StrCat(what, " ", planner::BytesText(bytes)));
  };
  for (const MemoryPurposeTraits& purpose : kMemoryPurposes) add(purpose.name, memory.*purpose.bytes);
  return absl::StrCat(planner::BytesText(memory.total()), parts.empty() ? "" : ": ", absl::StrJoin(parts, ", "));
}

void OnOutOfMemory(Core& core, const RankRun& rank, const RankReport& report) {
  JobRun& run = *core.state.run;
  const auto device = std::ranges::find(run.considered, rank.device, &DeviceDescription::id);
  if (device == run.considered.end()) return;
  const MemoryShortage shortage = report.shortage.value_or(MemoryShortage());
  if (shortage.tier == MemoryTier::kHost) return OnFullHost(core, rank, shortage);
  // More than the device declares is not believed.
  const int64_t held = rank.capacity_bytes > 0 ? std::min(shortage.held_bytes, rank.capacity_bytes) : shortage.held_bytes;
  const std::string found = Found(rank, shortage, held);
  if (++run.memory_corrections[rank.device] > kMostMemoryCorrections)
    return EndFor(core, rank, MemoryTier::kDevice,
                  absl::StrCat(found, "; its limit was corrected ", Count(kMostMemoryCorrections, "time"), " before"));
  absl::StatusOr<ComputeProfile> profile = StoredProfile(core, core.state.jobs.at(run.job).config, *device);
  absl::Status status = profile.status();
  if (profile.ok()) {
    const int64_t before = profile->usable_bytes > 0 ? profile->usable_bytes : rank.capacity_bytes;
    profile->usable_bytes = planner::CorrectedLimit(before, held, rank.planned.total());
    if (profile->usable_bytes == 0) {
      run.memory_end = absl::StrCat(found, "; how much it has nobody knows");
      return;
    }
    ++profile->memory_corrections;
    EventRecord event = LimitEvent(
        core, rank,
        absl::StrCat(found, ". Plans count on ", planner::BytesText(profile->usable_bytes), " of it from now on",
                     before > 0 ? absl::StrCat(", after ", planner::BytesText(before)) : "", ", and the job is planned again"));
    status = CommitProfile(core, core.state.jobs.at(run.job).config, *std::move(profile), std::move(event));
  }
  if (!status.ok()) LogError(absl::StrCat(found, ", which could not be noted: ", std::string(status.message())));
}

}  // namespace motley::coordinator
