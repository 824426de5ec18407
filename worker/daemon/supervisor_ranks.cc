// The supervisor and one rank: what it says, how it ends, when it hangs.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/logging.h"
#include "common/session/load_text.h"
#include "worker/daemon/supervisor.h"

namespace motley::worker {
namespace {

bool IsTerminal(RankEventKind kind) {
  return kind == RankEventKind::kFinished || kind == RankEventKind::kFailed || kind == RankEventKind::kPeerLost ||
         kind == RankEventKind::kNonFinite || kind == RankEventKind::kDied;
}

// The supervisor serves nobody else meanwhile; NVML answers within milliseconds, or a card hangs.
constexpr absl::Duration kCardPatience = absl::Milliseconds(500);
// What takes longer is shown to people, in so many bytes.
constexpr absl::Duration kNoticed = absl::Seconds(2);
constexpr size_t kMostOfDoing = 200;
constexpr size_t kMaxTextBytes = 8 << 10;  // of what people read

void CutText(std::string& text) {
  if (text.size() <= kMaxTextBytes) return;
  const size_t bytes = text.size();
  text = CleanLine(text.substr(0, kMaxTextBytes)) + absl::StrCat(" [... ", bytes - kMaxTextBytes, " bytes cut]");
}

bool IsQuestion(const WorkerReport& report) {
  return std::holds_alternative<KvSetReport>(report) || std::holds_alternative<KvGetReport>(report) ||
         std::holds_alternative<PublishReport>(report);
}

}  // namespace

void Supervisor::ServeRank(RankRun& run, Rank& rank) {
  (void)rank.process->Flush();
  // Reaped first, read afterwards: a dead process writes no more, so nothing that it said is missed.
  const std::optional<std::string> how = rank.process->TryReap();
  for (const std::string& line : rank.process->ReadLines()) SendLog(run, rank, line);
  absl::StatusOr<std::vector<RankMessage>> messages = rank.process->Receive();
  if (messages.ok()) {
    for (RankMessage& message : *messages) OnMessage(run, rank, std::move(message));
  } else if (rank.phase == Rank::Phase::kRunning) {
    Report(run, rank, RankEventKind::kFailed, std::string(messages.status().message()));
    KillRank(rank, Rank::Phase::kKilled, "it sent what is not a message");
  }
  if (how) OnExit(run, rank, *how);
}

void Supervisor::OnMessage(RankRun& run, Rank& rank, RankMessage message) {
  rank.watch.last_word = clock_.Now();
  rank.watch.has_spoken = true;
  if (rank.phase != Rank::Phase::kRunning) return;
  if (const auto* progress = std::get_if<ProgressReport>(&message)) return OnProgress(rank, *progress);
  WorkerReport& report = std::get<WorkerReport>(message);
  if (auto* event = std::get_if<RankReport>(&report)) return OnEvent(run, rank, std::move(*event));
  if (auto* profile = std::get_if<ProfileReport>(&report)) {
    AddLoads(*profile);
    for (size_t i = 0; run.profile != nullptr && i < run.ranks.size(); ++i) {
      if (&run.ranks[i] == &rank) run.profile->Done(i, *profile);
    }
    return;
  }
  if (const auto* step = std::get_if<StepReport>(&report)) {
    rank.watch.last_advance = rank.watch.last_word;
    rank.watch.has_advanced = true;
    metrics_.Step(rank.device, *step);
    if (rank.number == 0) rank.newest_step = *step;
    rank.beside_since.reset();
  }
  if (auto* log = std::get_if<LogReport>(&report)) CutText(log->text);
  if (auto* failed = std::get_if<CheckpointFailedReport>(&report)) CutText(failed->message);
  if (IsQuestion(report)) rank.questions.push_back(report);
  outbox_.Push(std::move(report));
}

// A rank does not see how its card is.
void Supervisor::AddLoads(ProfileReport& report) const {
  for (ComputeProfile& profile : report.compute) {
    if (config_.cards != nullptr) profile.load = config_.cards->EndLoad(profile.device);
    const std::string load = LoadText(profile.load);
    if (!load.empty()) LogInfo(absl::StrCat(profile.device.value(), ": measured ", load));
  }
}

void Supervisor::OnProgress(Rank& rank, const ProgressReport& progress) {
  if (progress.doing.empty()) return;  // says only that the process lives
  rank.watch.last_advance = clock_.Now();
  const bool beside = progress.instruction < 0;
  if (beside && !rank.beside_since) rank.beside_since = rank.watch.last_advance;
  if (!beside) rank.beside_since.reset();
  rank.doing_beside = beside ? CleanLine(progress.doing.substr(0, kMostOfDoing)) : "";
  rank.watch.doing = absl::StrCat("step ", progress.step + 1, ", ", progress.doing);
  // Restoring at a later step (instruction -1) is still the start.
  if (progress.instruction > 0 || (progress.step > 0 && progress.instruction >= 0)) rank.watch.has_advanced = true;
}

std::string Supervisor::DoingNow() const {
  for (const auto& run : runs_) {
    for (const Rank& rank : run->ranks) {
      const bool lasts =
          rank.phase == Rank::Phase::kRunning && rank.beside_since && clock_.Now() - *rank.beside_since >= kNoticed;
      if (lasts && run->profile == nullptr) return rank.doing_beside;
    }
  }
  return "";
}

// Why the rank's card cannot be used any more: asked when the rank ended with an error, whose cause it then is. Empty: it can, or
// it is no card.
std::string Supervisor::LostCard(const Rank& rank) const {
  return config_.cards == nullptr ? "" : config_.cards->LookAgain(rank.device, kCardPatience);
}

void Supervisor::OnEvent(RankRun& run, Rank& rank, RankReport event) {
  rank.ready |= event.kind == RankEventKind::kReady;
  const bool all_ready = std::ranges::all_of(run.ranks, [](const Rank& each) { return each.ready; });
  if (all_ready && !run.brought.empty()) config_.on_restored(std::exchange(run.brought, ""));
  rank.watch.last_advance = clock_.Now();
  if (event.kind == RankEventKind::kFailed) {
    if (const std::string lost = LostCard(rank); !lost.empty()) {
      event.kind = RankEventKind::kDied;
      event.message = absl::StrCat(lost, "; the rank said: ", event.message);
    }
  }
  CutText(event.message);
  if (IsTerminal(event.kind)) {
    rank.phase = Rank::Phase::kEnded;
    rank.process->CloseSocket();  // it exits
    rank.kill_at = clock_.Now() + config_.exit_grace;
    Remember(event);
    metrics_.RankExited(event.kind == RankEventKind::kFinished ? "finished" : "failed");
    metrics_.Released(rank.device);
  }
  if (!run.is_probe()) outbox_.Push(std::move(event));
}

void Supervisor::Report(RankRun& run, Rank& rank, RankEventKind kind, const std::string& text) {
  if (run.is_probe()) return;                                                             // its answer says it
  RankReport event{run.job, run.epoch, rank.number, rank.device, kind, CleanLine(text)};  // it may quote the rank's output
  if (kind != RankEventKind::kHung) Remember(event);
  outbox_.Push(std::move(event));
}

// For a coordinator that was restarted and asks how the newest epoch ended.
void Supervisor::Remember(const RankReport& last_word) {
  if (last_word.epoch == Newest(last_word.job)) last_words_[last_word.job].push_back(last_word);
}

void Supervisor::OnExit(RankRun& run, Rank& rank, const std::string& how) {
  const Rank::Phase phase = rank.phase;
  rank.phase = Rank::Phase::kGone;
  if (phase == Rank::Phase::kEnded) return;
  metrics_.Released(rank.device);
  if (phase == Rank::Phase::kKilled) {
    metrics_.RankExited("killed");
    if (run.is_probe()) FailProfile(run, rank, absl::StrCat("killed: ", rank.reason));
    return Report(run, rank, RankEventKind::kFinished, absl::StrCat("killed: ", rank.reason));
  }
  if (phase == Rank::Phase::kHung) {
    return Report(run, rank, RankEventKind::kDied, absl::StrCat("killed because it hung: ", rank.reason));
  }
  const std::string lost = LostCard(rank);
  std::string text = lost.empty() ? absl::StrCat(rank.device.value(), ": the rank's process ", how)
                                  : absl::StrCat(lost, "; the rank's process ", how);
  absl::StrAppend(&text, LastHeard(rank.watch));
  if (!rank.process->last_line().empty()) absl::StrAppend(&text, "; its last output: ", rank.process->last_line());
  LogError(text);
  metrics_.RankExited("died");
  Report(run, rank, RankEventKind::kDied, text);
  FailProfile(run, rank, text);
}

void Supervisor::CheckHung(RankRun& run, Rank& rank) {
  if (!rank.watch.has_spoken) {
    const ProcessSigns signs = SignsOf(rank.process->pid());
    if (Moved(rank.signs, signs)) rank.watch.last_sign = clock_.Now();
    rank.watch.stopped = signs.stopped();
    rank.signs = signs;
  }
  const WatchDecision decision = Decide(clock_.Now(), rank.watch, config_.watch);
  if (!decision.hung) return;
  const std::string text = absl::StrCat(rank.device.value(), ": ", decision.reason);
  LogError(absl::StrCat("job ", run.job.value(), " generation ", run.epoch.value(), ": ", text));
  metrics_.RankExited("hung");
  Report(run, rank, RankEventKind::kHung, text);
  KillRank(rank, Rank::Phase::kHung, decision.reason);
  FailProfile(run, rank, decision.reason);
}

// A card that is lost while its rank still waits for it.
void Supervisor::CheckCard(RankRun& run, Rank& rank) {
  const std::string lost = config_.cards == nullptr ? "" : config_.cards->Lost(rank.device);
  if (lost.empty()) return;
  LogError(absl::StrCat("job ", run.job.value(), " generation ", run.epoch.value(), ": ", lost));
  metrics_.RankExited("died");
  metrics_.Released(rank.device);
  Report(run, rank, RankEventKind::kDied, lost);
  FailProfile(run, rank, lost);
  rank.phase = Rank::Phase::kEnded;  // its exit is no news
  rank.process->Kill();
}

void Supervisor::SendLog(const RankRun& run, const Rank& rank, const std::string& line) {
  outbox_.Push(LogReport{run.job, run.epoch, rank.device.value(), CleanLine(line), absl::ToUnixMillis(clock_.WallNow())});
}

}  // namespace motley::worker
