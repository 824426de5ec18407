// The supervisor and one rank: what it says, how it ends, when it hangs.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/logging.h"
#include "common/utf8.h"
#include "worker/daemon/supervisor.h"

namespace motley::worker {
namespace {

bool IsTerminal(v1::RankEvent::Kind kind) {
  return kind == v1::RankEvent::KIND_FINISHED || kind == v1::RankEvent::KIND_FAILED || kind == v1::RankEvent::KIND_PEER_LOST ||
         kind == v1::RankEvent::KIND_NONFINITE;
}

const char* ExitKind(v1::RankEvent::Kind kind) { return kind == v1::RankEvent::KIND_FINISHED ? "finished" : "failed"; }

}  // namespace

void Supervisor::ServeRank(RankRun& run, Rank& rank) {
  (void)rank.process->Flush();
  // Reaped first, read afterwards: a dead process writes no more, so nothing that it said is missed.
  const std::optional<std::string> how = rank.process->TryReap();
  for (const std::string& line : rank.process->ReadLines()) SendLog(run, rank, line);
  absl::StatusOr<std::vector<v1::FromRank>> messages = rank.process->Receive();
  if (messages.ok()) {
    for (v1::FromRank& message : *messages) OnMessage(run, rank, message);
  } else if (rank.phase == Rank::Phase::kRunning) {
    Report(run, rank, v1::RankEvent::KIND_FAILED, std::string(messages.status().message()));
    KillRank(rank, Rank::Phase::kKilled, "it sent what is not a message");
  }
  if (how) OnExit(run, rank, *how);
}

void Supervisor::OnMessage(RankRun& run, Rank& rank, v1::FromRank& from) {
  rank.watch.last_word = clock_.Now();
  rank.watch.has_spoken = true;
  if (rank.phase != Rank::Phase::kRunning) return;
  v1::WorkerMessage message;
  switch (from.message_case()) {
    case v1::FromRank::kEvent: return OnEvent(run, rank, std::move(*from.mutable_event()));
    case v1::FromRank::kProgress: return OnProgress(rank, from.progress());
    case v1::FromRank::kProfileResult:
      if (run.profile != nullptr) {
        for (size_t i = 0; i < run.ranks.size(); ++i) {
          if (&run.ranks[i] == &rank) run.profile->Done(i, from.profile_result());
        }
      }
      return;
    case v1::FromRank::kStep:
      rank.watch.last_advance = rank.watch.last_word;
      rank.watch.has_advanced = true;
      metrics_.Step(rank.device, from.step());
      *message.mutable_step_report() = std::move(*from.mutable_step());
      break;
    case v1::FromRank::kKvSet: *message.mutable_kv_set() = std::move(*from.mutable_kv_set()); break;
    case v1::FromRank::kKvGet: *message.mutable_kv_get() = std::move(*from.mutable_kv_get()); break;
    case v1::FromRank::kPublishRequest: *message.mutable_publish_request() = std::move(*from.mutable_publish_request()); break;
    case v1::FromRank::kCheckpointPublished: *message.mutable_checkpoint_published() = std::move(*from.mutable_checkpoint_published()); break;
    case v1::FromRank::kCheckpointFailed: *message.mutable_checkpoint_failed() = std::move(*from.mutable_checkpoint_failed()); break;
    case v1::FromRank::kLog: *message.mutable_log() = std::move(*from.mutable_log()); break;
    case v1::FromRank::MESSAGE_NOT_SET: return;
  }
  if (message.has_kv_set() || message.has_kv_get() || message.has_publish_request()) rank.questions.push_back(message);
  outbox_.Push(std::move(message));
}

void Supervisor::OnProgress(Rank& rank, const v1::Progress& progress) {
  if (progress.doing().empty()) return;  // says only that the process lives
  rank.watch.last_advance = clock_.Now();
  rank.watch.doing = absl::StrCat("step ", progress.step() + 1, ", ", progress.doing());
  // Restoring at a later step (instruction -1) is still the start.
  if (progress.instruction() > 0 || (progress.step() > 0 && progress.instruction() >= 0)) rank.watch.has_advanced = true;
}

void Supervisor::OnEvent(RankRun& run, Rank& rank, v1::RankEvent event) {
  rank.watch.last_advance = clock_.Now();
  if (IsTerminal(event.kind())) {
    rank.phase = Rank::Phase::kEnded;
    rank.process->CloseSocket();  // it exits
    rank.kill_at = clock_.Now() + config_.exit_grace;
    if (run.epoch == newest_epoch_[run.job]) last_words_[run.job].push_back(event);
    metrics_.RankExited(ExitKind(event.kind()));
    metrics_.Released(rank.device);
  }
  v1::WorkerMessage message;
  *message.mutable_rank_event() = std::move(event);
  outbox_.Push(std::move(message));
}

void Supervisor::Report(RankRun& run, Rank& rank, v1::RankEvent::Kind kind, const std::string& text) {
  v1::WorkerMessage message;
  v1::RankEvent* event = message.mutable_rank_event();
  event->set_job_id(run.job);
  event->set_epoch(run.epoch);
  event->set_rank(rank.number);
  event->set_device_id(rank.device);
  event->set_kind(kind);
  event->set_message(ValidUtf8(text));  // it may quote the rank's output
  event->set_monotonic_ns(absl::ToInt64Nanoseconds(clock_.Now()));
  if (kind != v1::RankEvent::KIND_HUNG && run.epoch == newest_epoch_[run.job]) last_words_[run.job].push_back(*event);
  outbox_.Push(std::move(message));
}

void Supervisor::OnExit(RankRun& run, Rank& rank, const std::string& how) {
  const Rank::Phase phase = rank.phase;
  rank.phase = Rank::Phase::kGone;
  if (phase == Rank::Phase::kEnded) return;
  metrics_.Released(rank.device);
  if (phase == Rank::Phase::kKilled) {
    metrics_.RankExited("killed");
    return Report(run, rank, v1::RankEvent::KIND_FINISHED, absl::StrCat("killed: ", rank.reason));
  }
  if (phase == Rank::Phase::kHung) {
    return Report(run, rank, v1::RankEvent::KIND_DIED, absl::StrCat("killed because it hung: ", rank.reason));
  }
  std::string text = absl::StrCat(rank.device, ": the rank's process ", how);
  if (!rank.process->last_line().empty()) absl::StrAppend(&text, "; its last output: ", rank.process->last_line());
  LogError(text);
  metrics_.RankExited("died");
  Report(run, rank, v1::RankEvent::KIND_DIED, text);
  if (run.profile == nullptr) return;
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    if (&run.ranks[i] == &rank) run.profile->Fail(i, absl::StrCat("the rank's process ", how));
  }
}

void Supervisor::CheckHung(RankRun& run, Rank& rank) {
  const WatchDecision decision = Decide(clock_.Now(), rank.watch, config_.watch);
  if (!decision.hung) return;
  const std::string text = absl::StrCat(rank.device, ": ", decision.reason);
  LogError(absl::StrCat("job ", run.job, " epoch ", run.epoch, ": ", text));
  metrics_.RankExited("hung");
  Report(run, rank, v1::RankEvent::KIND_HUNG, text);
  KillRank(rank, Rank::Phase::kHung, decision.reason);
  if (run.profile == nullptr) return;
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    if (&run.ranks[i] == &rank) run.profile->Fail(i, decision.reason);
  }
}

void Supervisor::SendLog(const RankRun& run, const Rank& rank, const std::string& line) {
  v1::WorkerMessage message;
  v1::LogChunk* log = message.mutable_log();
  log->set_job_id(run.job);
  log->set_epoch(run.epoch);
  log->set_source(rank.device);
  log->set_text(ValidUtf8(line));
  log->set_unix_ms(absl::ToUnixMillis(clock_.WallNow()));
  outbox_.Push(std::move(message));
}

}  // namespace motley::worker
