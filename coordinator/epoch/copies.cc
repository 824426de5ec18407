#include "coordinator/epoch/copies.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/logging.h"
#include "coordinator/epoch/damaged_files.h"
#include "coordinator/epoch/holdings_round.h"
#include "coordinator/epoch/looks.h"
#include "coordinator/state/decide_copies.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

// Behind what failed, or could not be done: doubled each time in a row.
constexpr absl::Duration kFirstPause = absl::Seconds(2), kLongestPause = absl::Minutes(1);
// In a row, of a job that has ended: then it is looked after again when nodes come.
constexpr int kMostLooksOfEnded = 6;
constexpr int kMostRoundsOfEnded = 4;  // at once
// What lacks may come with the next look: a slow node gives its folder the name a moment later.
constexpr int kLooksBeforeItIsSaid = 2;
// A node that hashes what it has, or waits for its disk, says nothing meanwhile.
constexpr absl::Duration kTakerPatience = absl::Minutes(10);
constexpr absl::Duration kTicketOfCopy = absl::Hours(24);

bool ClusterIsUsed(const Core& core) { return core.state.run && core.state.run->stage != Stage::kIdle; }

int64_t LimitNow(const Core& core) { return ClusterIsUsed(core) ? core.copy_rate.bytes_per_second() : 0; }

absl::Duration PauseAfter(int failures) {
  return std::min(kLongestPause, kFirstPause * (int64_t{1} << std::clamp(failures - 1, 0, 5)));
}

bool IsLeaving(const NodeRecord& node) { return node.drained || node.leaves_at; }

// A job that has ended is looked after until what it left is safe, and as long as nodes leave that may have it.
bool NeedsCopies(const Core& core, const JobRecord& job) {
  if (!IsOnNodesDisks(job.config.checkpoint) || job.newest_checkpoint.empty()) return false;
  if (!IsFinal(job.phase) || job.safe_checkpoint != job.newest_checkpoint) return true;
  return std::any_of(core.state.nodes.begin(), core.state.nodes.end(),
                     [](const auto& node) { return node.second.connected && IsLeaving(node.second); });
}

bool Trains(const Core& core, const JobId& job) {
  return core.state.run && core.state.run->job == job &&
         (core.state.run->stage == Stage::kStarting || core.state.run->stage == Stage::kRunning);
}

void Say(Core& core, const JobRecord& job, const char* kind, std::string message) {
  EventRecord event;
  event.job = job.id;
  event.kind = kind;
  event.epoch = job.epoch;
  event.message = std::move(message);
  core.Emit(std::move(event));
}

void NoteSafe(Core& core, JobRecord& job, const CopyPlan& plan) {
  if (plan.safe == job.safe_checkpoint) return;
  Batch batch;
  batch.jobs.push_back(job);
  batch.jobs[0].safe_checkpoint = plan.safe;
  EventRecord event;
  event.job = job.id;
  event.kind = kind::kCheckpointSafe;
  event.epoch = job.epoch;
  event.message = plan.safe_nodes > 1
                      ? absl::StrCat("checkpoint ", plan.safe, " is safe: each of its files lies on ", plan.safe_nodes, " nodes")
                      : absl::StrCat("checkpoint ", plan.safe, " is whole, without copies: the loss of a disk would lose it");
  batch.events.push_back(std::move(event));
  // Not stored, it is found again by the next look.
  if (const absl::Status status = core.journal.Commit(batch); !status.ok()) {
    return LogError(
        absl::StrCat("job ", job.id.value(), ": not recorded which checkpoint is safe: ", std::string(status.message())));
  }
  job = batch.jobs[0];
}

void SetMetrics(Core& core, const JobRecord& job, const CopyPlan& plan) {
  const MetricLabels labels = {{"job_id", job.id.value()}};
  core.metrics.copies_missing.Set(labels, plan.missing);
  const std::optional<CheckpointPlace> safe = PlaceOf(plan.safe);
  if (safe) core.metrics.safe_checkpoint_step.Set(labels, static_cast<double>(safe->second));
}

using Copies = std::map<NodeName, std::vector<std::string>>;

// Without files: what was begun is called off.
void Tell(Core& core, const JobRecord& job, CopyKeeper& keeper, const NodeName& node, CheckpointSource source,
          std::vector<std::string> files) {
  CopyCommand command{job.id, job.epoch, job.uid, keeper.copy_id, std::move(source), std::move(files), LimitNow(core)};
  if (!command.files.empty()) keeper.takers[node] = {command, core.state.nodes.at(node).up_since, core.clock.Now()};
  core.Send(node, std::move(command));
}

void EndCopies(Core& core, const JobRecord& job, CopyKeeper& keeper) {
  for (const auto& [node, taker] : std::exchange(keeper.takers, {})) {
    if (core.state.nodes.contains(node)) Tell(core, job, keeper, node, {}, {});
  }
  keeper.progress.clear();
  keeper.copying.clear();
}

void BeginCopies(Core& core, const JobRecord& job, CopyKeeper& keeper, const UnitedCheckpoint& checkpoint, const Copies& files,
                 const Holdings& held) {
  EndCopies(core, job, keeper);
  keeper.copying = checkpoint.head.name;
  keeper.copy_id = absl::StrCat("copy-", job.id.value(), "-", ++core.holdings_rounds_begun, "-", core.journal.UnixMs());
  keeper.failed.clear();
  keeper.nobody_has.clear();
  keeper.some_done = false;
  std::set<NodeName> had = keeper.had[keeper.copying];
  for (const HeldFile& file : checkpoint.head.files) had.insert(NodeName(file.node));
  keeper.all_here = std::all_of(had.begin(), had.end(), [&](const NodeName& node) { return held.offers.contains(node); });
  for (const auto& [node, of_node] : files)
    Tell(core, job, keeper, node, SourceFor(core, node, checkpoint, job.uid, held.offers, kTicketOfCopy), of_node);
}

// Who is said to have a damaged file looks at it, and copies it anew where it is: of the newest such checkpoint.
bool BeginMending(Core& core, const JobRecord& job, CopyKeeper& keeper, const CopyScene& scene) {
  const Holdings& held = scene.held;
  for (const UnitedCheckpoint& checkpoint : held.checkpoints) {
    if (scene.damaged.contains(checkpoint.head.name)) continue;  // nobody has it whole
    Copies files;
    for (const auto& [node, name, file] : keeper.damaged_files) {
      if (name == checkpoint.head.name && held.offers.contains(node)) files[node].push_back(file);
    }
    if (!files.empty()) {
      BeginCopies(core, job, keeper, checkpoint, files, held);
      return true;
    }
    if (checkpoint.head.name == job.newest_checkpoint) break;  // the job has one behind those
  }
  return false;
}

CopyScene SceneOf(Core& core, const JobRecord& job, const CopyKeeper& keeper, const Holdings& held) {
  // Nobody writes for a job that has ended.
  const Epoch newest = IsFinal(job.phase) ? Epoch(job.epoch.value() + 1) : job.epoch;
  const CheckpointSection& section = job.config.checkpoint;
  CopyScene scene{held, {}, newest, section.copies, section.keep_latest_k, job.safe_checkpoint, keeper.copying};
  scene.under_way = !keeper.takers.empty();
  scene.in_use = job.newest_checkpoint;
  scene.failed = keeper.failed;
  scene.go_back = job.go_back;
  if (const JobRun* run = RunOf(core, job.id)) scene.damaged = run->damaged;
  for (const auto& [name, node] : core.state.nodes) {
    if (IsLeaving(node)) scene.leaving.insert(name);
  }
  if (!Trains(core, job.id)) return scene;
  for (const RankRun& rank : core.state.run->ranks) scene.training.insert(NodeOf(rank.device));
  return scene;
}

void NoteWhoHad(CopyKeeper& keeper, const Holdings& held) {
  std::map<std::string, std::set<NodeName>> had;
  for (const UnitedCheckpoint& checkpoint : held.checkpoints) {
    std::set<NodeName>& nodes = had[checkpoint.head.name] = std::move(keeper.had[checkpoint.head.name]);
    for (const std::set<NodeName>& holders : checkpoint.holders) nodes.insert(holders.begin(), holders.end());
  }
  keeper.had = std::move(had);
}

// Whether the copies under way go on, or others were begun.
bool Decide(Core& core, JobRecord& job, CopyKeeper& keeper) {
  Holdings held = HoldingsOf(core, *keeper.round, job);
  keeper.round.reset();
  NoteWhoHad(keeper, held);
  LeaveOutDamaged(core, job.id, held);
  const CopyScene scene = SceneOf(core, job, keeper, held);
  const CopyPlan plan = DecideCopies(scene);
  NoteSafe(core, job, plan);
  SetMetrics(core, job, plan);
  for (const auto& [node, checkpoints] : plan.drops) core.Send(node, DropCommand{job.id, scene.epoch, job.uid, checkpoints});
  const bool persists = keeper.failures >= kLooksBeforeItIsSaid;
  if (persists && plan.lacks != keeper.said && !plan.lacks.empty()) {
    Say(core, job, kind::kCopyFailed,
        absl::StrCat("checkpoints have fewer copies than checkpoint.copies = ", scene.copies, ": ", plan.lacks));
  }
  if (persists || plan.lacks.empty()) keeper.said = plan.lacks;
  if (scene.under_way && plan.copy == keeper.copying) return true;
  if (BeginMending(core, job, keeper, scene)) return true;
  if (plan.copy.empty()) return false;
  const auto checkpoint = std::find_if(held.checkpoints.begin(), held.checkpoints.end(),
                                       [&](const UnitedCheckpoint& each) { return each.head.name == plan.copy; });
  BeginCopies(core, job, keeper, *checkpoint, plan.files, held);
  return true;
}

void EndRound(Core& core, JobRecord& job, CopyKeeper& keeper) {
  if (Decide(core, job, keeper)) return;
  EndCopies(core, job, keeper);
  const bool is_safe = job.safe_checkpoint == job.newest_checkpoint;
  keeper.failures = is_safe ? 0 : keeper.failures + 1;
  const bool ended = IsFinal(job.phase) && keeper.failures >= kMostLooksOfEnded;
  if (!is_safe && !ended) keeper.look_at = core.clock.Now() + PauseAfter(keeper.failures);
}

// All who are said to have damaged files of it have looked, nobody was given a whole one, and all who had files are here: nobody
// comes who makes it good.
void CondemnIfNobodyHasIt(Core& core, const JobId& id, const CopyKeeper& keeper) {
  JobRun* run = RunOf(core, id);
  if (run == nullptr || keeper.nobody_has.empty() || keeper.some_done || !keeper.all_here) return;
  for (const auto& [node, name, file] : keeper.damaged_files) {
    if (name == keeper.copying && !keeper.nobody_has.contains(node)) return;
  }
  if (!run->damaged.insert(keeper.copying).second) return;
  Say(core, core.state.jobs.at(id), kind::kCheckpointSkipped,
      absl::StrCat("checkpoint ", keeper.copying,
                   " is damaged, and no node has a whole copy; the one before it is used instead"));
}

// The last taker is done, or has failed. What failed is not begun again before anything newer.
void EndTakers(Core& core, const JobId& id, CopyKeeper& keeper) {
  CondemnIfNobodyHasIt(core, id, keeper);
  if (!keeper.failed.empty()) keeper.copying.clear();
  keeper.failures = keeper.failed.empty() ? 0 : keeper.failures + 1;
  const bool again = keeper.failed.empty() || keeper.some_done;
  keeper.look_at = core.clock.Now() + (again ? absl::ZeroDuration() : PauseAfter(keeper.failures));
}

// Whose session is another one than it was told by, or who says nothing.
void ForgetSilent(Core& core, const JobId& id, CopyKeeper& keeper) {
  if (keeper.takers.empty()) return;
  for (auto taker = keeper.takers.begin(); taker != keeper.takers.end();) {
    const auto node = core.state.nodes.find(taker->first);
    const bool same = node != core.state.nodes.end() && node->second.connected && node->second.up_since == taker->second.up_since;
    if (same && core.clock.Now() - taker->second.heard < kTakerPatience) {
      ++taker;
      continue;
    }
    keeper.failed.insert(taker->first);
    taker = keeper.takers.erase(taker);
  }
  if (keeper.takers.empty()) EndTakers(core, id, keeper);
}

void Limit(Core& core, CopyKeeper& keeper) {
  const int64_t limit = LimitNow(core);
  for (auto& [node, taker] : keeper.takers) {
    if (taker.command.bytes_per_second == limit) continue;
    taker.command.bytes_per_second = limit;
    core.Send(node, taker.command);
  }
}

void Advance(Core& core, JobRecord& job, CopyKeeper& keeper) {
  ForgetSilent(core, job.id, keeper);
  Limit(core, keeper);
  if (keeper.round) {
    if (IsOver(core, *keeper.round)) EndRound(core, job, keeper);
    return;
  }
  const bool trains = Trains(core, job.id) && core.state.run->stage == Stage::kRunning;
  const bool news = keeper.membership != core.state.membership_changed || (trains && keeper.epoch != job.epoch);
  if (!news && (!keeper.look_at || core.clock.Now() < *keeper.look_at)) return;
  // A node that is drained makes all jobs that have ended ask at once.
  const auto asking =
      std::count_if(core.copies.begin(), core.copies.end(), [](const auto& each) { return each.second.round.has_value(); });
  if (IsFinal(job.phase) && asking >= kMostRoundsOfEnded) return;
  keeper.membership = core.state.membership_changed;
  if (trains) keeper.epoch = job.epoch;
  keeper.look_at.reset();
  keeper.round = AskForHoldings(core, job);
}

void OnFailedCopy(Core& core, const JobRecord& job, CopyKeeper& keeper, const NodeName& node, const CopyCommand& command,
                  const FetchReport& report) {
  keeper.failed.insert(node);
  if (keeper.failures == 0) {
    Say(core, job, kind::kCopyFailed,
        absl::StrCat("node ", node.value(), " could not copy its part of checkpoint ", keeper.copying, ": ",
                     CleanLine(report.error), "; it is tried again"));
  }
  const bool nobody = report.error_code == absl::StatusCode::kNotFound || report.error_code == absl::StatusCode::kDataLoss;
  const bool own = std::any_of(command.files.begin(), command.files.end(), [&](const std::string& file) {
    return keeper.damaged_files.contains({node, keeper.copying, file});
  });
  if (nobody && own) keeper.nobody_has.insert(node);
}

}  // namespace

void LookAfterCopies(Core& core, const JobRecord& job) {
  if (!NeedsCopies(core, job)) return;
  CopyKeeper& keeper = core.copies[job.id];
  keeper.look_at = core.clock.Now();
  keeper.failures = 0;
}

void KeepCopies(Core& core) {
  if (core.stopping || core.state.stops_at) return;
  for (auto& [id, job] : core.state.jobs) {
    if (NeedsCopies(core, job)) core.copies[id];
  }
  for (auto keeper = core.copies.begin(); keeper != core.copies.end();) {
    const auto job = core.state.jobs.find(keeper->first);
    const bool known = job != core.state.jobs.end();
    if (known && (NeedsCopies(core, job->second) || !keeper->second.takers.empty() || keeper->second.round)) {
      Advance(core, job->second, keeper->second);
      ++keeper;
      continue;
    }
    keeper = core.copies.erase(keeper);
  }
}

bool OnHoldingsForCopies(Core& core, const NodeName& node, const HoldingsReport& report) {
  const auto keeper = core.copies.find(report.job);
  return keeper != core.copies.end() && keeper->second.round && TakeHoldings(*keeper->second.round, node, report);
}

void OnCopyReport(Core& core, const NodeName& node, const FetchReport& report) {
  const auto found = core.copies.find(report.job);
  const auto job = core.state.jobs.find(report.job);
  if (found == core.copies.end() || job == core.state.jobs.end() || found->second.copy_id != report.copy_id) return;
  CopyKeeper& keeper = found->second;
  const auto taker = keeper.takers.find(node);
  if (taker == keeper.takers.end()) return;
  taker->second.heard = core.clock.Now();
  FetchReport& before = keeper.progress[node];
  const int64_t more = report.bytes_here - (before.copy_id == report.copy_id ? before.bytes_here : 0);
  core.metrics.files_bytes.Add({{"purpose", kBytesOfCopies}}, static_cast<double>(std::max<int64_t>(more, 0)));
  before = report;
  NoteDamagedFiles(core, node, report, keeper.copying);
  if (!report.done && report.error.empty()) return;
  const CopyCommand command = std::move(keeper.takers.extract(taker).mapped().command);
  if (report.done) {
    keeper.some_done = true;
    for (const std::string& file : command.files) keeper.damaged_files.erase({node, keeper.copying, file});
  } else {
    OnFailedCopy(core, job->second, keeper, node, command, report);
  }
  if (keeper.takers.empty()) EndTakers(core, report.job, keeper);
}

bool AwaitsFilesOf(const Core& core, const NodeName& node) {
  const absl::Duration now = core.clock.Now();
  const auto gives = [&](const CopyCommand& command) {
    const std::vector<CheckpointHolder>& holders = command.source.holders;
    return std::any_of(holders.begin(), holders.end(), [&](const CheckpointHolder& holder) { return holder.node == node; });
  };
  // What its ranks save last is copied when they have ended.
  if (core.state.run && std::any_of(core.state.run->ranks.begin(), core.state.run->ranks.end(), [&](const RankRun& rank) {
        return NodeOf(rank.device) == node && !IsGone(core.state, rank);
      })) {
    return true;
  }
  for (const auto& [id, input] : core.inputs) {
    if (std::any_of(input.takers.begin(), input.takers.end(), [&](const auto& taker) { return gives(taker.second.command); }))
      return true;
  }
  return std::any_of(core.state.jobs.begin(), core.state.jobs.end(), [&](const auto& entry) {
    if (!NeedsCopies(core, entry.second)) return false;
    const auto keeper = core.copies.find(entry.first);
    if (keeper == core.copies.end() || keeper->second.round || keeper->second.membership != core.state.membership_changed)
      return true;
    // What has failed is tried again.
    if (keeper->second.look_at && (*keeper->second.look_at <= now || !keeper->second.failed.empty())) return true;
    const auto& takers = keeper->second.takers;
    return std::any_of(takers.begin(), takers.end(), [&](const auto& taker) { return gives(taker.second.command); });
  });
}

bool AreCopied(const Core& core) {
  return std::any_of(core.copies.begin(), core.copies.end(), [](const auto& keeper) { return !keeper.second.takers.empty(); });
}

std::optional<v1::CopyProgress> CopyingOf(const Core& core, const JobId& job) {
  const auto found = core.copies.find(job);
  if (found == core.copies.end() || found->second.takers.empty()) return std::nullopt;
  v1::CopyProgress out;
  out.set_checkpoint(found->second.copying);
  for (const auto& [node, report] : found->second.progress) {
    out.set_bytes(out.bytes() + report.bytes);
    out.set_bytes_here(out.bytes_here() + report.bytes_here);
  }
  out.set_bytes_per_second(found->second.takers.begin()->second.command.bytes_per_second);
  return out;
}

}  // namespace motley::coordinator
