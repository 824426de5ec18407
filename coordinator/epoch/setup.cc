#include "coordinator/epoch/setup.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/count.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/device/link_class.h"
#include "common/session/load_text.h"
#include "common/session/overlap_text.h"
#include "common/session/profile.h"
#include "coordinator/epoch/planning.h"
#include "coordinator/epoch/prober.h"
#include "coordinator/epoch/setup_reach.h"
#include "coordinator/state/initial_weights.h"
#include "coordinator/state/measured_speed.h"
#include "coordinator/state/membership.h"
#include "planner/cluster/measured_collectives.h"
#include "planner/live/job_request.h"

namespace motley::coordinator {
namespace {

void SendStorageCheck(Core& core, const NodeName& node) {
  JobRun& run = *core.state.run;
  const JobRecord& job = core.state.jobs.at(run.job);
  run.storage[node].asked = true;
  StorageCheckCommand check{job.id,
                            job.epoch,
                            job.config.data.path,
                            CheckpointFolder(job),
                            run.token,
                            !run.token.empty() && node == run.token_writer,
                            "",
                            InitialFolder(job)};
  check.job_uid = job.uid;
  check.validation_path = job.config.data.validation_path;
  core.Send(node, std::move(check));
}

std::set<NodeName> NodesOf(const std::vector<DeviceDescription>& devices) {
  std::set<NodeName> nodes;
  for (const DeviceDescription& device : devices) nodes.insert(NodeOf(device.id));
  return nodes;
}

// One that has passed already, so that the others are compared with the folder that the job trains in; else one that trained
// before its worker was started again; else any.
NodeName ChooseTokenWriter(const JobRun& run, const std::set<NodeName>& nodes) {
  for (const NodeName& node : nodes) {
    if (!run.storage.contains(node)) return node;
  }
  for (const NodeName& node : nodes) {
    if (run.proven.contains(node)) return node;
  }
  return *nodes.begin();
}

// What has to be measured before the planner can work.
struct Missing {
  std::vector<DeviceId> compute;
  bool collectives = false;
};

absl::StatusOr<Missing> FindMissing(Core& core, const JobRun& run, const JobConfig& config) {
  Missing missing;
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape shape, ResolveModel(config));
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(config.training));
  for (const DeviceDescription& device : run.considered) {
    const std::string digest = ComputeProfileDigest(device, shape, config.training.seq_len, precision.compute);
    if (run.prediction.Doubts(device.id) || !core.store.FindComputeProfile(digest).ok()) missing.compute.push_back(device.id);
  }
  missing.collectives =
      run.considered.size() > 1 &&
      (run.prediction.doubts_together() ||
       !core.store.FindCollectiveProfile(CollectiveProfileDigest(run.considered, shape, precision.master)).ok());
  return missing;
}

// As if the planner had said so.
void RefuseBeforePlanning(Core& core, absl::Status why) {
  JobRun& run = *core.state.run;
  run.stage = Stage::kPlanning;
  run.stage_since = core.clock.Now();
  run.prepared.emplace();
  run.prepared->status = std::move(why);
}

std::vector<RankAssignment> ProfileRanks(const Core& core, const std::vector<DeviceDescription>& devices, const JobRecord& job,
                                         const ModelShape& shape) {
  std::vector<RankAssignment> ranks(devices.size());
  const std::vector<std::pair<int, int>> pairs = RepresentativePairs(devices);
  for (size_t r = 0; r < ranks.size(); ++r) {
    RankAssignment& rank = ranks[r];
    rank.job = job.id;
    rank.job_uid = job.uid;
    rank.epoch = job.epoch;
    rank.rank = static_cast<int>(r);
    rank.devices = Ids(devices);
    for (const DeviceDescription& device : devices) {
      rank.data_addresses.push_back(core.state.nodes.at(NodeOf(device.id)).description.data_address);
    }
    rank.model = shape;
    rank.config = RankConfig(job);
    rank.data_digest = job.data.digest;
    rank.validation_digest = job.validation.digest;
    rank.device = devices[r];
    rank.link_pairs = pairs;
  }
  return ranks;
}

}  // namespace

JobConfig RankConfig(const JobRecord& job) {
  JobConfig config = job.config;
  config.checkpoint.folder = CheckpointFolder(job);
  return config;
}

absl::Status BeginStorageChecks(Core& core, const std::vector<DeviceDescription>& devices, const std::string& reason) {
  JobRun& run = *core.state.run;
  JobRecord& job = core.state.jobs.at(run.job);
  JobRecord next = WithPhase(job, JobPhase::kProfiling, reason);
  next.epoch = Epoch(job.epoch.value() + 1);
  EpochRow row{job.id, next.epoch, core.journal.UnixMs(), {}};
  for (const DeviceDescription& device : devices) {
    row.ranks.push_back({device.id, core.state.nodes.at(NodeOf(device.id)).description.incarnation});
  }
  Batch batch;
  batch.jobs.push_back(next);
  batch.epochs.push_back(row);
  batch.events.push_back(PhaseEvent(job, next));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  job = next;

  ResetTokens(core);
  run.stage = Stage::kStorage;
  run.stage_since = core.clock.Now();
  run.trouble.waited = true;
  run.considered = devices;
  for (const DeviceDescription& device : devices) run.took_part.insert(device.id);
  run.ranks.clear();
  run.failures.clear();
  run.started_processes = false;
  run.predicts_collectives = false;
  run.infeasible.clear();
  run.storage.clear();
  const std::set<NodeName> nodes = NodesOf(devices);
  for (const NodeName& node : nodes) {
    auto ok = run.storage_ok.find(node);
    const bool passed = ok != run.storage_ok.end() && ok->second == core.state.nodes.at(node).description.incarnation;
    if (!passed || run.storage_in_doubt) run.storage[node];
  }
  AskSetupReach(core, nodes);
  if (run.storage.empty()) return absl::OkStatus();
  run.token_writer = ChooseTokenWriter(run, nodes);
  run.token = job.config.checkpoint.folder.empty()
                  ? ""
                  : absl::StrCat(job.id.value(), "-", job.epoch.value(), "-", core.journal.UnixMs());
  run.storage[run.token_writer];
  if (!run.token.empty()) {
    SendStorageCheck(core, run.token_writer);
  } else {
    for (const auto& [node, unused] : run.storage) SendStorageCheck(core, node);
  }
  return absl::OkStatus();
}

void OnStorageReport(Core& core, const NodeName& node, const StorageReport& report) {
  JobRun& run = *core.state.run;
  auto it = run.storage.find(node);
  if (run.stage != Stage::kStorage || it == run.storage.end() || !it->second.asked) return;
  it->second.answered = true;
  it->second.report = report;
  if (node != run.token_writer || run.token.empty()) return;
  const bool written = report.error.empty();
  // Another one may be compared with as well, unless somebody passed before: then only who trains in the folder knows it.
  if (!written && run.storage.size() != NodesOf(run.considered).size()) return;
  for (const auto& [other, answer] : run.storage) {
    if (answer.asked) continue;
    if (!written) run.token_writer = other;
    SendStorageCheck(core, other);
    if (!written) return;
  }
}

absl::Status BeginProfiling(Core& core) {
  JobRun& run = *core.state.run;
  JobRecord& job = core.state.jobs.at(run.job);
  for (const auto& [node, answer] : run.storage) {
    run.storage_ok[node] = core.state.nodes.at(node).description.incarnation;
    if (job.initial_digest.empty()) job.initial_digest = answer.report.initial_digest;
    if (job.data.digest.empty()) job.data = answer.report.data, job.validation = answer.report.validation;
  }
  run.storage_in_doubt = false;
  if (absl::Status computes = planner::CheckComputeType(run.considered, job.config); !computes.ok()) {
    RefuseBeforePlanning(core, std::move(computes));
    return absl::OkStatus();
  }
  MOTLEY_ASSIGN_OR_RETURN(const Missing missing, FindMissing(core, run, job.config));
  run.measure_again.clear();
  if (missing.compute.empty() && !missing.collectives) return BeginPlanning(core);

  MOTLEY_ASSIGN_OR_RETURN(const ModelShape shape, ResolveModel(job.config));
  if (absl::Status fits = planner::CheckCouldFit(run.considered, shape, job.config); !fits.ok()) {
    RefuseBeforePlanning(core, std::move(fits));
    return absl::OkStatus();
  }
  const std::set<DeviceId> compute(missing.compute.begin(), missing.compute.end());
  std::map<NodeName, ProfileCommand> commands;
  run.stage = Stage::kProfiling;
  run.stage_since = core.clock.Now();
  run.started_processes = true;
  run.measures_alone = !missing.compute.empty();
  run.ranks.clear();
  run.ranks_in_order = missing.collectives;
  for (RankAssignment& rank : ProfileRanks(core, run.considered, job, shape)) {
    const bool measured_alone = compute.contains(rank.device.id);
    if (!measured_alone && !missing.collectives) continue;
    const NodeName node = NodeOf(rank.device.id);
    run.ranks.push_back({rank.device.id, core.state.nodes.at(node).description.incarnation, rank.device.memory_bytes});
    ProfileCommand& command = commands[node];
    command.job = job.id;
    command.epoch = job.epoch;
    command.collectives = missing.collectives;
    if (measured_alone) command.compute_devices.push_back(rank.device.id);
    command.ranks.push_back(std::move(rank));
  }
  run.profiling.clear();
  for (auto& [node, command] : commands) {
    run.profiling.insert(node);
    core.Send(node, std::move(command));
  }
  core.SetReason(job, absl::StrCat("measuring ", Count(missing.compute.size(), "device"),
                                   missing.collectives ? " and their collectives" : ""));
  return absl::OkStatus();
}

absl::Status StoreProfiles(Core& core, const NodeName& node, const std::vector<DeviceDescription>& devices,
                           const ProfileReport& report) {
  const JobRecord& job = core.state.jobs.at(core.state.run->job);
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape shape, ResolveModel(job.config));
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(job.config.training));
  Batch batch;
  std::vector<std::string> lines;
  for (ComputeProfile profile : report.compute) {
    for (const DeviceDescription& device : devices) {
      if (device.id != profile.device || NodeOf(device.id) != node) continue;
      profile.digest = ComputeProfileDigest(device, shape, job.config.training.seq_len, precision.compute);
      // Measured anew for its times: how much memory there is was found out otherwise.
      if (const auto before = core.store.FindComputeProfile(profile.digest); before.ok()) {
        profile.usable_bytes = before->usable_bytes;
        profile.memory_corrections = before->memory_corrections;
        profile.trials = before->trials;
        profile.trial_layers = before->trial_layers;
      }
      MeasuredSpeed speed = SpeedOf(profile, shape, job.config.training.seq_len);
      speed.model = ModelName(job.config.model);
      core.state.speeds[device.id] = speed;
      core.state.run->prediction.Measured(device.id);
      lines.push_back(absl::StrCat(device.id.value(), " ", static_cast<int64_t>(speed.tokens_per_second), " tokens/s"));
      const std::string measured = MeasuredText(profile.load, profile.cut_short);
      if (!measured.empty()) absl::StrAppend(&lines.back(), " (", measured, ")");
      batch.compute_profiles.emplace_back(std::move(profile), speed);
      break;
    }
  }
  if (!report.collectives.points.empty()) {
    CollectiveProfile profile = report.collectives;
    core.state.run->prediction.Measured(DeviceId());
    // A note for people, for whose sake no plan on these devices is to fail.
    if (!planner::Validate(profile, "").ok()) profile.overlap.clear();
    profile.digest = CollectiveProfileDigest(devices, shape, precision.master);
    const std::string overlap = OverlapText(profile.overlap);
    lines.push_back(absl::StrCat("collectives of ", Count(devices.size(), "device"), overlap.empty() ? "" : ": ", overlap));
    batch.collective_profiles.push_back(std::move(profile));
  }
  EventRecord event;
  event.job = job.id;
  event.kind = kind::kProfile;
  event.node = node;
  event.epoch = job.epoch;
  event.message = absl::StrCat("measured ", absl::StrJoin(lines, ", "));
  if (!lines.empty()) batch.events.push_back(std::move(event));
  return core.journal.Commit(batch);
}

absl::StatusOr<ProfileCommand> ProbeProfile(const Core& core, const NodeName& node, const std::string& check_id) {
  const JobRecord& job = core.state.jobs.at(core.state.run->job);
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape shape, ResolveModel(job.config));
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(job.config.training));
  ProfileCommand command;
  command.job = job.id;
  command.epoch = job.epoch;
  command.check_id = check_id;
  std::vector<DeviceDescription> missing;
  MOTLEY_RETURN_IF_ERROR(planner::CheckComputeType(core.state.nodes.at(node).description.devices, job.config));
  for (const DeviceDescription& device : core.state.nodes.at(node).description.devices) {
    const std::string digest = ComputeProfileDigest(device, shape, job.config.training.seq_len, precision.compute);
    if (core.store.FindComputeProfile(digest).ok()) continue;
    missing.push_back(device);
    command.compute_devices.push_back(device.id);
  }
  command.ranks = ProfileRanks(core, missing, job, shape);
  return command;
}

absl::Status GoOnPredicted(Core& core, const std::string& why) {
  JobRun& run = *core.state.run;
  const JobRecord& job = core.state.jobs.at(run.job);
  run.profiling.clear();
  run.predicts_collectives = true;
  std::set<NodeName> nodes;
  for (const RankRun& rank : run.ranks) {
    if (!IsGone(core.state, rank)) nodes.insert(NodeOf(rank.device));
  }
  for (const NodeName& node : nodes) core.Send(node, StopCommand{job.id, job.epoch, false, why});
  EventRecord event;
  event.job = job.id;
  event.kind = kind::kProfile;
  event.epoch = job.epoch;
  event.message = why;
  core.Emit(std::move(event));
  return BeginPlanning(core);
}

void OnProfileReport(Core& core, const NodeName& node, const ProfileReport& report) {
  JobRun& run = *core.state.run;
  if (run.stage != Stage::kProfiling || !run.profiling.contains(node)) return;
  for (RankRun& rank : run.ranks) {
    if (NodeOf(rank.device) == node) rank.ended = true;
  }
  if (!report.error.empty()) {
    run.failures.push_back({core.clock.Now(), FailureKind::kProfile, node, DeviceId(), report.error, report.fault, ""});
    // What devices measured alone, before the network failed, need not be measured again.
    if (report.fault != Fault::kPeer || report.compute.empty()) return;
    if (absl::Status stored = StoreProfiles(core, node, run.considered, report); !stored.ok()) {
      LogError(absl::StrCat("the profile of node ", node.value(), " could not be stored: ", std::string(stored.message())));
    }
    return;
  }
  if (absl::Status status = StoreProfiles(core, node, run.considered, report); !status.ok()) {
    run.failures.push_back({core.clock.Now(), FailureKind::kProfile, node, DeviceId(), std::string(status.message())});
    return;
  }
  run.profiling.erase(node);
}

}  // namespace motley::coordinator
