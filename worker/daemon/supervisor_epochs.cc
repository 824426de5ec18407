// The supervisor's commands from the coordinator: begin, measure, stop.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clean_text.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "worker/daemon/host_room.h"
#include "worker/daemon/localize.h"
#include "worker/daemon/rank_files.h"
#include "worker/daemon/supervisor.h"

namespace motley::worker {
namespace {

constexpr absl::Duration kRoomPatience = absl::Seconds(5), kRoomLook = absl::Milliseconds(100);

std::string Name(const JobId& job, Epoch epoch) { return absl::StrCat("generation ", epoch.value(), " of job ", job.value()); }

}  // namespace

void Supervisor::StartOnLoop(const StartCommand& command) {
  if (command.ranks.empty()) return;
  const RankAssignment& first = command.ranks[0];
  if (IsStale(first.job, first.epoch)) return;
  BeginEpoch(first.job, first.epoch, command.token);
  if (absl::Status status = BeginRun(first.job, first.epoch, command.ranks, nullptr); !status.ok()) return;
  RankRun& run = *runs_.back();
  if (!command.source.name.empty()) run.brought = first.resume_from;
  std::vector<RankAssignment> ranks = command.ranks;
  SetTrueMemory(ranks);
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    metrics_.Assigned(command.ranks[i]);
    RankAssignment& rank = ranks[i];
    (void)run.ranks[i].process->Send(StartCommand{{std::move(rank)}});  // a rank that is gone already is reported by its exit
  }
}

void Supervisor::ProfileOnLoop(ProfileCommand command) {
  const bool probe = !command.check_id.empty();
  if (command.ranks.empty()) {
    for (const auto& run : runs_) {
      if (probe && run->is_probe() && run->profile->report().check_id == command.check_id) KillRun(*run, "nobody waits for it");
    }
    return;
  }
  SetTrueMemory(command.ranks);
  absl::Status status;
  if (!probe) {
    if (IsStale(command.job, command.epoch)) return;
    BeginEpoch(command.job, command.epoch, command.token);
  } else {
    // What trains here is worth more than a probe; an older probe is not.
    for (const auto& run : runs_) {
      const bool runs =
          std::any_of(run->ranks.begin(), run->ranks.end(), [](const Rank& r) { return r.phase == Rank::Phase::kRunning; });
      if (runs && !run->is_probe()) status = absl::FailedPreconditionError(Name(run->job, run->epoch) + " runs here");
      if (run->is_probe()) KillRun(*run, "another probe begins");
    }
  }
  if (status.ok()) status = BeginRun(command.job, command.epoch, command.ranks, std::make_unique<ProfileSchedule>(command));
  if (status.ok()) return DriveProfile(*runs_.back());
  outbox_.Push(ProfileReport{command.job,
                             command.epoch,
                             absl::StrCat("the ranks could not be started: ", CleanLine(std::string(status.message()))),
                             {},
                             {},
                             command.check_id});
}

// What the coordinator knows is what the device declares and the node offers. Of the host each rank has what those before leave.
void Supervisor::SetTrueMemory(std::vector<RankAssignment>& ranks) const {
  int64_t kept = 0;
  for (RankAssignment& rank : ranks) {
    const auto device =
        std::ranges::find(config_.devices, rank.device.id, [](const OfferedDevice& d) { return d.description.id; });
    if (device == config_.devices.end()) continue;
    const auto part_of = [](int64_t bytes, double part) { return static_cast<int64_t>(static_cast<double>(bytes) * part); };
    rank.device.memory_bytes = part_of(rank.device.memory_bytes, device->true_memory);
    if (device->true_host_memory == 1) continue;
    const int64_t offered = device->description.node_host_memory_bytes;  // the coordinator may have learnt that it is less
    rank.device.node_host_memory_bytes = std::max<int64_t>(1, part_of(offered, device->true_host_memory) - kept);
    kept += rank.planned_host_bytes;
  }
}

bool Supervisor::IsStale(const JobId& job, Epoch epoch) const {
  const Epoch newest = Newest(job);
  if (epoch >= newest) return false;
  LogWarning(absl::StrCat(Name(job, epoch), " is older than ", newest.value(), "; ignored"));
  return true;
}

// A device has one rank: what still runs here is of an epoch that is over.
void Supervisor::BeginEpoch(const JobId& job, Epoch epoch, const std::string& token) {
  See(job, epoch, token);
  last_words_[job].clear();
  for (const auto& run : runs_) KillRun(*run, Name(job, epoch) + " begins");
}

// What cannot be started is reported as the rank's failure, but for a probe, whose answer says it.
absl::Status Supervisor::BeginRun(const JobId& job, Epoch epoch, const std::vector<RankAssignment>& assignments,
                                  std::unique_ptr<ProfileSchedule> profile) {
  auto run = std::make_unique<RankRun>();
  run->job = job;
  run->epoch = epoch;
  run->profile = std::move(profile);
  if (absl::Status room = CheckHostRoomFor(assignments); !room.ok()) {
    LogError(std::string(room.message()));
    metrics_.RankExited("failed");
    RankReport report{
        job, epoch, assignments.front().rank, assignments.front().device.id, RankEventKind::kFailed, std::string(room.message())};
    report.host_offer_bytes = StillOffered(assignments.front().device.node_host_memory_bytes, ReadHostMemory(config_.host_root));
    Remember(report);
    outbox_.Push(std::move(report));
    return room;
  }
  absl::StatusOr<UniqueFd> link_clock = NewLinkClock();
  for (const RankAssignment& assignment : assignments) {
    absl::StatusOr<Rank> rank =
        link_clock.ok() ? StartRank(assignment, {link_clock->get(), config_.known_parts}) : link_clock.status();
    if (!rank.ok()) {
      const std::string text = absl::StrCat(assignment.device.id.value(), ": ", CleanLine(std::string(rank.status().message())));
      LogError(text);
      metrics_.RankExited("failed");
      if (!run->is_probe()) {
        RankReport report{job, epoch, assignment.rank, assignment.device.id, WhyNotStarted(assignment.device.id, rank.status()),
                          text};
        Remember(report);
        outbox_.Push(std::move(report));
      }
      return absl::Status(rank.status().code(), text);  // the ranks started so far die with `run`
    }
    run->ranks.push_back(*std::move(rank));
  }
  LogInfo(absl::StrCat("job ", job.value(), " generation ", epoch.value(), ": ",
                       run->profile ? "measuring with " : "training with ", run->ranks.size(), " ranks"));
  runs_.push_back(std::move(run));
  return absl::OkStatus();
}

absl::Status Supervisor::CheckHostRoomFor(const std::vector<RankAssignment>& assignments) const {
  if (PlannedHostBytes(assignments) == 0) return absl::OkStatus();
  for (absl::Duration waited;; waited += kRoomLook) {
    const HostMemory host = ReadHostMemory(config_.host_root);
    absl::Status room = CheckHostRoom(assignments, host, {});
    if (room.ok()) return room;
    if (waited >= (runs_.empty() ? absl::ZeroDuration() : kRoomPatience)) {
      return CheckHostRoom(assignments, host, LargestProcesses(config_.host_root));
    }
    absl::SleepFor(kRoomLook);
  }
}

// A lost card is a device that died: the job goes on without it. So is one whose program was replaced, until its worker was
// started anew. Everything else repeats by itself.
RankEventKind Supervisor::WhyNotStarted(const DeviceId& device, const absl::Status& status) const {
  const bool lost = config_.cards != nullptr && !config_.cards->Lost(device).empty();
  return lost || absl::IsAborted(status) ? RankEventKind::kDied : RankEventKind::kFailed;
}

absl::StatusOr<Rank> Supervisor::StartRank(const RankAssignment& assignment, const SharedMemory& memory) {
  const DeviceId& device = assignment.device.id;
  const auto offered = std::find_if(config_.devices.begin(), config_.devices.end(),
                                    [&](const OfferedDevice& each) { return each.description.id == device; });
  if (offered == config_.devices.end()) {
    return absl::NotFoundError(absl::StrCat("device '", device.value(), "' is not of this node"));
  }
  // Its ranks may be of another build than this worker said.
  if (StampOf(offered->rank_binary) != programs_.at(offered->rank_binary)) {
    return absl::AbortedError(absl::StrCat(
        offered->rank_binary, " was replaced since this worker was started, by an upgrade, say: ", "start motley-worker anew"));
  }
  // The storage check has looked at the files, where they may hang; whoever starts ranks without one gets no further than this.
  const JobConfig& config = assignment.config;
  const std::string& validation = config.data.validation_path;
  const CheckpointSection& checkpoint = config.checkpoint;
  const std::vector<std::string> of_inputs = InputRoots(config_.files_folder, {config.data.path, validation, checkpoint.initial});
  std::vector<std::string> read_roots = config_.roots.paths();
  read_roots.insert(read_roots.end(), of_inputs.begin(), of_inputs.end());
  const FileRoots with_inputs(std::move(read_roots));
  if (!config.data.path.empty()) MOTLEY_RETURN_IF_ERROR(with_inputs.Covers("data.path", config.data.path));
  if (!validation.empty()) MOTLEY_RETURN_IF_ERROR(with_inputs.Covers("data.validation_path", validation));
  // Where checkpoints lie on this node's disk the worker itself has said where (localize.h).
  const bool local = IsOnNodesDisks(checkpoint) && !checkpoint.folder.empty();
  if (!local && !checkpoint.folder.empty()) MOTLEY_RETURN_IF_ERROR(config_.roots.Covers("checkpoint.folder", checkpoint.folder));
  // Another job's weights come as what the ranks go on from does.
  const bool initial_is_path = !checkpoint.initial.empty() && !InitialIsJob(checkpoint);
  if (initial_is_path) MOTLEY_RETURN_IF_ERROR(with_inputs.Covers("checkpoint.initial", checkpoint.initial));
  std::vector<std::string> variables;
  if (offered->description.kind == DeviceKind::kCuda) {
    // The rank's only card: a UUID stays when indices change.
    variables.push_back(absl::StrCat("CUDA_VISIBLE_DEVICES=", offered->description.card.uuid));
    if (config_.cards != nullptr) MOTLEY_RETURN_IF_ERROR(config_.cards->MayStart(device, offered->description.memory_bytes));
  }
  Rank rank;
  rank.number = assignment.rank;
  rank.device = device;
  std::vector<std::string> arguments = {"--data-authentication",
                                        std::string(DataAuthenticationName(config_.data_authentication))};
  RankRoots roots = local ? RootsOfLocalRank(config_.roots, checkpoint.folder) : RootsOfRank(config_.roots, checkpoint.folder);
  roots.read.insert(roots.read.end(), of_inputs.begin(), of_inputs.end());
  for (std::string& argument : RootArguments(roots)) arguments.push_back(std::move(argument));
  MOTLEY_ASSIGN_OR_RETURN(rank.process, RankProcess::Start(offered->rank_binary, arguments, variables, memory));
  rank.watch.started = rank.watch.last_word = rank.watch.last_advance = rank.watch.last_sign = clock_.Now();
  rank.watch.predicted_step = absl::Seconds(assignment.predicted_step_seconds);
  rank.watch.first_progress =
      absl::Seconds(assignment.first_progress_seconds > 0 ? assignment.first_progress_seconds : kFirstProgressSeconds);
  return rank;
}

void Supervisor::StopOnLoop(const StopCommand& command) {
  const Epoch newest = Newest(command.job);
  if (command.epoch < newest) return;
  for (const auto& run : runs_) {
    if (run->job != command.job) continue;
    if (!command.save || run->profile != nullptr) {
      KillRun(*run, command.reason);
      continue;
    }
    for (Rank& rank : run->ranks) {
      if (rank.phase != Rank::Phase::kRunning) continue;
      (void)rank.process->Send(command);
      rank.reason = command.reason;
      rank.kill_at = clock_.Now() + std::max(config_.stop_floor, 10 * rank.watch.predicted_step);
    }
  }
  // A coordinator that was restarted does not know who has ended already.
  if (!command.save && newest == command.epoch) {
    for (const RankReport& event : last_words_[command.job]) outbox_.Push(event);
  }
  See(command.job, command.epoch, command.token);
}

void Supervisor::KillRank(Rank& rank, Rank::Phase phase, const std::string& reason) {
  if (rank.phase == Rank::Phase::kGone) return;
  if (rank.phase == Rank::Phase::kRunning) {
    rank.phase = phase;
    rank.reason = reason;
  }
  rank.process->Kill();
}

void Supervisor::KillRun(RankRun& run, const std::string& reason) {
  for (Rank& rank : run.ranks) KillRank(rank, Rank::Phase::kKilled, reason);
}

void Supervisor::DriveProfile(RankRun& run) {
  for (auto& [index, command] : run.profile->Next()) {
    run.ranks[index].watch.last_advance = clock_.Now();
    if (config_.cards != nullptr && !command.compute_devices.empty()) config_.cards->BeginLoad(run.ranks[index].device);
    (void)run.ranks[index].process->Send(command);
  }
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    // Waits for its turn.
    if (!run.profile->busy(i)) run.ranks[i].watch.last_advance = clock_.Now();
  }
  if (run.profile_sent || !run.profile->finished()) return;
  if (!run.profile_ended) EndProfile(run);
  const bool gone = std::ranges::all_of(run.ranks, [](const Rank& rank) { return rank.phase == Rank::Phase::kGone; });
  if (run.profile->is_trial() && !gone) return;
  run.profile_sent = true;
  outbox_.Push(run.profile->report());
}

void Supervisor::EndProfile(RankRun& run) {
  run.profile_ended = true;
  for (Rank& rank : run.ranks) {
    if (rank.phase != Rank::Phase::kRunning) continue;
    if (!run.profile->report().error.empty()) {
      KillRank(rank, Rank::Phase::kKilled, "the measurement failed");
    } else {
      rank.phase = Rank::Phase::kEnded;
      rank.process->CloseSocket();
      rank.kill_at = clock_.Now() + config_.exit_grace;
      metrics_.RankExited("finished");
    }
  }
}

void Supervisor::FailProfile(RankRun& run, const Rank& rank, const std::string& why) {
  if (run.profile == nullptr) return;
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    if (&run.ranks[i] == &rank) run.profile->Fail(i, why);
  }
}

}  // namespace motley::worker
