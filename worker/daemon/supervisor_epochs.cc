// The supervisor's commands from the coordinator: begin, measure, stop.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/utf8.h"
#include "worker/daemon/supervisor.h"

namespace motley::worker {

void Supervisor::StartOnLoop(const v1::StartEpoch& start) {
  if (start.ranks().empty()) return;
  if (!BeginRun(start.ranks(0), {start.ranks().begin(), start.ranks().end()}, nullptr)) return;
  RankRun& run = *runs_.back();
  for (Rank& rank : run.ranks) {
    v1::ToRank message;
    for (const v1::RankAssignment& assignment : start.ranks()) {
      if (assignment.rank() != rank.number) continue;
      *message.mutable_load() = assignment;
      metrics_.Assigned(assignment);
    }
    (void)rank.process->Send(message);  // a rank that is gone already is reported by its exit
  }
}

void Supervisor::ProfileOnLoop(const v1::ProfileRequest& request) {
  if (request.ranks().empty()) return;
  if (!BeginRun(request.ranks(0), {request.ranks().begin(), request.ranks().end()}, std::make_unique<ProfileSchedule>(request))) {
    v1::WorkerMessage message;
    v1::ProfileResult* result = message.mutable_profile_result();
    result->set_job_id(request.job_id());
    result->set_epoch(request.epoch());
    result->set_error("the ranks could not be started; the node's log says why");
    outbox_.Push(std::move(message));
    return;
  }
  DriveProfile(*runs_.back());
}

bool Supervisor::BeginRun(const v1::RankAssignment& first, std::vector<v1::RankAssignment> assignments,
                          std::unique_ptr<ProfileSchedule> profile) {
  int64_t& newest = newest_epoch_[first.job_id()];
  if (first.epoch() < newest) {
    LogWarning(absl::StrCat("job ", first.job_id(), ": epoch ", first.epoch(), " is older than ", newest, "; ignored"));
    return false;
  }
  newest = first.epoch();
  last_words_[first.job_id()].clear();
  // A device has one rank: what still runs here is of an epoch that is over.
  for (const auto& run : runs_) KillRun(*run, absl::StrCat("epoch ", first.epoch(), " of job ", first.job_id(), " begins"));

  auto run = std::make_unique<RankRun>();
  run->job = first.job_id();
  run->epoch = first.epoch();
  run->profile = std::move(profile);
  absl::StatusOr<UniqueFd> link_clock = NewLinkClock();
  if (!link_clock.ok()) {
    FailToStart(first, std::string(link_clock.status().message()));
    return false;
  }
  const std::vector<std::string>& known = config_.device_ids;
  for (const v1::RankAssignment& assignment : assignments) {
    absl::StatusOr<std::unique_ptr<RankProcess>> process =
        absl::NotFoundError(absl::StrCat("device '", assignment.device().id(), "' is not of this node"));
    if (std::find(known.begin(), known.end(), assignment.device().id()) != known.end()) {
      process = RankProcess::Start(config_.rank_binary, link_clock->get());
    }
    if (!process.ok()) {
      FailToStart(assignment, std::string(process.status().message()));
      return false;  // the ranks started so far die with `run`
    }
    Rank rank;
    rank.number = assignment.rank();
    rank.device = assignment.device().id();
    rank.process = *std::move(process);
    rank.watch.started = rank.watch.last_word = rank.watch.last_advance = clock_.Now();
    rank.watch.predicted_step = absl::Seconds(assignment.predicted_step_seconds());
    rank.watch.first_progress = absl::Seconds(assignment.first_progress_seconds() > 0 ? assignment.first_progress_seconds() : 60);
    run->ranks.push_back(std::move(rank));
  }
  LogInfo(absl::StrCat("job ", run->job, " epoch ", run->epoch, ": ", run->profile ? "measuring with " : "training with ", run->ranks.size(),
                       " ranks"));
  runs_.push_back(std::move(run));
  return true;
}

void Supervisor::FailToStart(const v1::RankAssignment& assignment, const std::string& why) {
  LogError(absl::StrCat(assignment.device().id(), ": ", why));
  v1::WorkerMessage message;
  v1::RankEvent* event = message.mutable_rank_event();
  event->set_job_id(assignment.job_id());
  event->set_epoch(assignment.epoch());
  event->set_rank(assignment.rank());
  event->set_device_id(assignment.device().id());
  event->set_kind(v1::RankEvent::KIND_FAILED);
  event->set_message(ValidUtf8(why));
  event->set_monotonic_ns(absl::ToInt64Nanoseconds(clock_.Now()));
  last_words_[assignment.job_id()].push_back(*event);
  outbox_.Push(std::move(message));
  metrics_.RankExited("failed");
}

void Supervisor::StopOnLoop(const v1::StopEpoch& stop) {
  int64_t& newest = newest_epoch_[stop.job_id()];
  if (stop.epoch() < newest) return;
  for (const auto& run : runs_) {
    if (run->job != stop.job_id()) continue;
    if (!stop.save() || run->profile != nullptr) {
      KillRun(*run, stop.reason());
      continue;
    }
    for (Rank& rank : run->ranks) {
      if (rank.phase != Rank::Phase::kRunning) continue;
      v1::ToRank message;
      *message.mutable_stop() = stop;
      (void)rank.process->Send(message);
      rank.reason = stop.reason();
      rank.kill_at = clock_.Now() + std::max(config_.stop_floor, 10 * rank.watch.predicted_step);
    }
  }
  // A coordinator that was restarted does not know who has ended already.
  if (!stop.save() && newest == stop.epoch()) {
    for (const v1::RankEvent& event : last_words_[stop.job_id()]) {
      v1::WorkerMessage message;
      *message.mutable_rank_event() = event;
      outbox_.Push(std::move(message));
    }
  }
  newest = stop.epoch();
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
  for (auto& [index, request] : run.profile->Next()) {
    v1::ToRank message;
    *message.mutable_profile() = std::move(request);
    run.ranks[index].watch.last_advance = clock_.Now();
    (void)run.ranks[index].process->Send(message);
  }
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    // Waits for its turn.
    if (!run.profile->busy(i)) run.ranks[i].watch.last_advance = clock_.Now();
  }
  if (run.profile_sent || !run.profile->finished()) return;
  run.profile_sent = true;
  v1::WorkerMessage message;
  *message.mutable_profile_result() = run.profile->result();
  outbox_.Push(std::move(message));
  for (Rank& rank : run.ranks) {
    if (rank.phase != Rank::Phase::kRunning) continue;
    if (!run.profile->result().error().empty()) {
      KillRank(rank, Rank::Phase::kKilled, "the measurement failed");
    } else {
      rank.phase = Rank::Phase::kEnded;
      rank.process->CloseSocket();
      rank.kill_at = clock_.Now() + config_.exit_grace;
      metrics_.RankExited("finished");
    }
  }
}

}  // namespace motley::worker
