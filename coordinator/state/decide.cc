#include "coordinator/state/decide.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "coordinator/state/awaited.h"
#include "coordinator/state/decide_view.h"
#include "coordinator/state/folder_wait.h"
#include "coordinator/state/lending.h"
#include "coordinator/state/membership.h"
#include "coordinator/state/setup_reach.h"
#include "coordinator/state/witness.h"

namespace motley::coordinator {
namespace {

Decision Stopped() { return {Finish{JobPhase::kStopped}, "stopped by the user"}; }

// After a restart: every worker that had ranks is there again, so that nobody has to be waited for.
bool AllBack(const DecideView& v) {
  return !v.run.ranks.empty() && std::all_of(v.run.ranks.begin(), v.run.ranks.end(), [&](const RankRun& rank) {
    auto node = v.state.nodes.find(NodeOf(rank.device));
    return node != v.state.nodes.end() && node->second.connected;
  });
}

Decision DecideIdle(const DecideView& v) {
  if (v.now < v.run.not_before && !AllBack(v)) {
    return {KeepOn{}, "the coordinator was restarted and gives its workers a lease's time to come back"};
  }
  if (!AllGone(v.state, v.run) && v.now < v.run.not_before + v.config.kill_timeout) {
    return {KeepOn{}, "waiting until the ranks of the last generation have ended"};
  }
  // Not before: nobody would tell ranks of a job that is over to end.
  if (v.job.stop_requested) return Stopped();
  if (!v.run.has_run && v.run.trouble.deaths >= v.config.max_first_deaths) {
    return {Finish{JobPhase::kFailed},
            absl::StrFormat("ranks died or stalled %s in a row before the first step; the last time: %s",
                            Count(v.run.trouble.deaths, "time"), v.run.trouble.reason)};
  }
  if (const std::string why = WhyNoWitness(v.state); !why.empty()) return {Wait{}, why};
  if (v.run.suspicion) {  // which a job that was put aside has not
    if (auto reading = DecideSecondReader(v.now, v.state, v.config)) return *reading;
  }
  if (v.usable.empty()) {
    const auto awaits = v.state.awaits_inputs.find(v.run.job);
    return {Wait{true}, awaits != v.state.awaits_inputs.end() ? awaits->second : WhyNoDevice(v.state, v.run)};
  }
  if (const std::string away = NamedAway(v.state, v.run, v.usable); !away.empty()) {
    const bool by_hand = !v.job.config.planner.plan_json.empty();
    return {Wait{true}, absl::StrCat(by_hand ? "the plan by hand" : "planner.pins", " names what cannot be used now: ", away,
                                     "; goes on by itself when it can",
                                     by_hand ? "" : " (planner.pins_required = false drops pins that cannot be kept)")};
  }
  const bool in_own_turn = v.run.infeasible_borrowed && !Borrows(v.state, v.run);
  if (!v.run.infeasible.empty() && std::ranges::equal(v.usable, v.run.infeasible, IsSameToPlan) && !in_own_turn) {
    return {Wait{true}, v.run.infeasible_reason};
  }
  if (auto yield = DecideYield(v)) return *yield;
  if (!v.run.folder.why.empty()) return {Wait{true}, v.run.folder.why};
  const absl::Duration pause = PauseAfter(v.run.trouble.remedy, v.run.trouble.times);
  if (!v.run.trouble.waited && v.in_stage() < pause) {
    return {Wait{}, absl::StrFormat("%s; tried again after %.3g s", v.run.trouble.reason, absl::ToDoubleSeconds(pause))};
  }
  if (!v.settled()) return {KeepOn{}, "nodes are joining or leaving; begins when that has settled"};
  return {BeginSetup{v.usable},
          absl::StrCat("checking data and checkpoint folder on the nodes of ", Count(v.usable.size(), "device"))};
}

Decision DecideStorage(const DecideView& v) {
  if (v.job.stop_requested) return Stopped();
  if (auto yield = DecideYield(v)) return *yield;
  if (v.changed()) return {AbandonSetup{}, absl::StrCat("set-up begins again: ", DescribeChange(v))};
  if (auto verdict = StorageVerdict(v)) return *verdict;
  std::vector<std::string> missing;
  for (const auto& [node, answer] : v.run.storage) {
    if (!answer.answered) missing.push_back(node.value());
  }
  if (auto verdict = ReachVerdict(v, missing.empty())) return *verdict;
  if (missing.empty()) return {RequestProfiles{}, ""};
  return {KeepOn{}, absl::StrCat("checking data and checkpoint folder on ", absl::StrJoin(missing, ", "))};
}

// The first failure of the epoch, as the end of it.
std::optional<Decision> DecideFailure(const DecideView& v) {
  std::optional<Failure> cause = FirstCause(v.now, v.run.failures, v.config.cause);
  if (!cause) return std::nullopt;
  std::set<NodeName> blamed = BlamedNewcomers(v.state, v.run, *cause);
  const bool ends = EndsJob(v.state, v.run, *cause) && blamed.empty();
  const Ending ending = ends ? Ending::kFail : Ending::kReplan;
  std::string reason = Describe(*cause);
  if (ends && RemedyFor(*cause) == Remedy::kWithoutNode && !v.run.odd_nodes.empty()) {
    absl::StrAppend(&reason, "; node ", v.run.odd_nodes.begin()->value(), ", which was left out before, said the like");
  }
  return Decision{EndEpoch{false, ending, CauseLabel(*cause), *cause, std::move(blamed)}, std::move(reason)};
}

// Newcomers whose ranks have not told the others where they listen, once those that were there before have. Where these did not
// come either, it is rather the host, or the way to it: they are all given longer.
std::set<NodeName> SilentNewcomers(const DecideView& v) {
  const std::set<NodeName> unproven = UnprovenNodes(v.state, v.run);
  std::set<NodeName> silent;
  bool others_came = true;
  for (const RankRun& rank : v.run.ranks) {
    if (rank.met || rank.ready || rank.ended) continue;
    const NodeName node = NodeOf(rank.device);
    if (unproven.contains(node)) {
      silent.insert(node);
    } else {
      others_came = false;
    }
  }
  return v.in_stage() > (others_came ? v.config.meet_timeout : v.config.swap_timeout) ? silent : std::set<NodeName>();
}

// A swap goes on without those that say nothing in it.
std::optional<Decision> DecideSilence(const DecideView& v) {
  std::set<NodeName> silent = SilentNewcomers(v);
  if (silent.empty()) return std::nullopt;
  const auto rank = std::find_if(v.run.ranks.begin(), v.run.ranks.end(), [&](const RankRun& r) {
    return silent.contains(NodeOf(r.device)) && !r.met && !r.ready && !r.ended;
  });
  const Failure failure{
      v.now, FailureKind::kHung, NodeOf(rank->device), rank->device,
      absl::StrFormat("it did not come to the meeting of the ranks within %.0f s", absl::ToDoubleSeconds(v.in_stage()))};
  return Decision{EndEpoch{false, Ending::kReplan, CauseLabel(failure), failure, std::move(silent)}, Describe(failure)};
}

// In a swap nothing but collectives is measured: every newcomer's devices were measured in its probe.
Decision DecideCollectivesOfSwap(const DecideView& v) {
  if (auto silence = DecideSilence(v)) return *silence;
  absl::Duration met = v.now - v.in_stage() + v.config.meet_timeout;  // at the latest
  const auto has_met = [](const RankRun& rank) { return rank.met.has_value() || rank.ended; };
  if (std::all_of(v.run.ranks.begin(), v.run.ranks.end(), has_met)) {
    met = v.now - v.in_stage();
    for (const RankRun& rank : v.run.ranks) met = std::max(met, rank.met.value_or(met));
  }
  if (v.now - met <= v.config.collectives_timeout) return {KeepOn{}, "measuring collectives with the nodes that joined"};
  return {PredictCollectives{}, absl::StrFormat("the collectives of these %s were not measured within %.0f s, which a job that "
                                                "stands still waits for them: the plan is made with predicted ones",
                                                Count(v.run.considered.size(), "device"), absl::ToDoubleSeconds(v.in_stage()))};
}

Decision DecideProfiling(const DecideView& v) {
  if (auto failure = DecideFailure(v)) return *failure;
  if (v.job.stop_requested) return {EndEpoch{false, Ending::kStop, "", std::nullopt}, "stopping, as the user asked"};
  if (auto yield = DecideYield(v)) return *yield;
  if (v.changed())
    return {EndEpoch{false, Ending::kReplan, "", std::nullopt}, absl::StrCat("profiling begins again: ", DescribeChange(v))};
  if (v.run.profiling.empty()) return {PreparePlan{}, ""};
  std::vector<std::string> missing;
  for (const NodeName& node : v.run.profiling) missing.push_back(node.value());
  std::set<NodeName> newcomers = UnprovenNodes(v.state, v.run);
  const bool swap = !newcomers.empty();
  if (swap && !v.run.measures_alone) return DecideCollectivesOfSwap(v);
  const absl::Duration limit = swap ? v.config.swap_timeout : v.config.profile_timeout;
  if (v.in_stage() > limit) {
    const std::string why = absl::StrFormat("profiling was not finished within %.0f s on %s", absl::ToDoubleSeconds(limit),
                                            absl::StrJoin(missing, ", "));
    const Failure failure{v.now, FailureKind::kProfile, NodeName(missing.front()), DeviceId(), why};
    return {EndEpoch{false, swap ? Ending::kReplan : Ending::kFail, CauseLabel(failure), failure, std::move(newcomers)}, why};
  }
  return {KeepOn{}, absl::StrCat("measuring compute, memory and collectives on ", absl::StrJoin(missing, ", "))};
}

// A search without end.
Decision DecideLatePlan(const DecideView& v) {
  if (v.in_stage() <= v.config.planning_timeout) return {KeepOn{}, kPlanningReason};
  const std::string reason =
      absl::StrFormat("planning took longer than %.0f s", absl::ToDoubleSeconds(v.config.planning_timeout));
  if (v.run.has_run) return {RetryLater{}, reason};
  return {Finish{JobPhase::kFailed}, absl::StrCat(reason, "; choose another strategy")};
}

// A worker may drop what it is sent, and say nothing.
Decision DecideStarting(const DecideView& v) {
  std::vector<std::string> missing;
  for (const RankRun& rank : v.run.ranks) {
    if (!rank.ready && !rank.ended) missing.push_back(rank.device.value());
  }
  if (missing.empty() || v.run.epoch_steps > 0) return {MarkRunning{}, "training"};
  if (auto silence = DecideSilence(v)) return *silence;
  std::set<NodeName> newcomers = UnprovenNodes(v.state, v.run);
  const absl::Duration patience = (newcomers.empty() ? v.config.starting_timeout : v.config.swap_timeout) +
                                  absl::Seconds(v.run.resume_bytes / v.config.slowest_restore_bytes_per_second);
  if (v.in_stage() > patience) {
    return {EndEpoch{false, Ending::kReplan, "start_timeout", std::nullopt, std::move(newcomers)},
            absl::StrFormat("not every rank was ready within %.0f s; nothing is heard of %s", absl::ToDoubleSeconds(patience),
                            absl::StrJoin(missing, ", "))};
  }
  return {KeepOn{}, absl::StrFormat("ranks start, meet and restore (%d of %d are ready)", v.run.ranks.size() - missing.size(),
                                    v.run.ranks.size())};
}

// They may be ended in the midst of it, and a card has to be free of the one rank before it takes the next. Newcomers that do not
// say so are waited for less long.
bool MeasurersAreGone(const DecideView& v) {
  const std::set<NodeName> unproven = UnprovenNodes(v.state, v.run);
  return std::all_of(v.run.ranks.begin(), v.run.ranks.end(), [&](const RankRun& rank) {
    const bool is_new = unproven.contains(NodeOf(rank.device));
    return IsGone(v.state, rank) || v.in_stage() > (is_new ? v.config.collectives_timeout : v.config.kill_timeout);
  });
}

// The devices that trained have no plan by themselves, so it is not for the newcomers that there is none: perhaps more are
// missing, and these may be of the same job, come back one after the other.
bool HadNoPlanBefore(const DecideView& v) {
  const std::set<NodeName> unproven = UnprovenNodes(v.state, v.run);
  std::vector<DeviceId> proven = Ids(v.run.considered);
  std::erase_if(proven, [&](const DeviceId& device) { return unproven.contains(NodeOf(device)); });
  return v.run.prepared->of_planner && proven == v.run.proven_without_plan;
}

Decision DecidePlanning(const DecideView& v) {
  if (v.job.stop_requested) return Stopped();
  if (auto yield = DecideYield(v)) return *yield;
  if (v.changed()) return {AbandonSetup{}, absl::StrCat("planning begins again: ", DescribeChange(v))};
  if (v.run.looking && !v.run.prepared) return DecideLook(v);  // no newcomer's fault, however long it takes
  const bool swap = !UnprovenNodes(v.state, v.run).empty();
  if (swap && v.in_stage() > v.config.swap_timeout) {
    return {RefuseNewcomers{},
            absl::StrFormat("planning with it took longer than %.0f s", absl::ToDoubleSeconds(v.config.swap_timeout))};
  }
  if (!v.run.prepared) return DecideLatePlan(v);
  const absl::Status& status = v.run.prepared->status;
  if (status.ok()) {
    if (!MeasurersAreGone(v)) return {KeepOn{}, "waiting until the ranks that measured have ended"};
    return {StartRanks{}, "ranks start, meet and restore"};
  }
  const std::string text(status.message());
  if (MayBeBackLater(status)) return {RetryLater{true}, WhyNoLook(status)};
  if (!v.run.memory_end.empty() && absl::IsResourceExhausted(status)) return {Finish{JobPhase::kFailed, status.code()}, text};
  if (swap && !HadNoPlanBefore(v)) return {RefuseNewcomers{}, text};
  // Once there was a plan.
  const bool had_plan = v.run.has_run || v.job.started_unix_ms > 0;
  const bool awaits_unreached = !WithoutWhom(v.state, v.run).empty();
  if (const std::string away = PartnersAway(v.state, v.run);
      ((had_plan && v.run.prepared->of_planner) || awaits_unreached) && !away.empty()) {
    return {Wait{true},
            absl::StrCat("no plan for the devices that are left (", text, "); goes on when others can be used again: ", away)};
  }
  if (!swap && !v.run.prepared->too_small.empty()) return {LeaveOutDevices{v.run.prepared->too_small}, text};
  if ((absl::IsResourceExhausted(status) || swap) && v.run.has_run) {
    return {Wait{true}, absl::StrCat("no plan fits the devices that are left (", text, "); goes on when a worker joins")};
  }
  // Others are away now, for which an older job waits: that says nothing of this one's own turn.
  if ((absl::IsResourceExhausted(status) || v.run.prepared->of_planner) && Borrows(v.state, v.run)) {
    return {Wait{true}, absl::StrCat("no plan for the devices that can be borrowed (", text, "); tried again when that changes")};
  }
  return {Finish{JobPhase::kFailed, status.code()}, text};
}

// A device holds more beside tensors than the plan counted. All ranks' numbers are waited for, so that one plan has them; not
// beyond a failure, which may be memory that is short already, and does not make the plan right.
std::optional<Decision> DecideContext(const DecideView& v) {
  if (v.run.context.sentence().empty()) return std::nullopt;
  const bool awaited =
      std::any_of(v.run.ranks.begin(), v.run.ranks.end(), [](const RankRun& rank) { return !rank.ready && !rank.ended; });
  if (awaited && v.run.failures.empty()) return std::nullopt;
  return Decision{EndEpoch{false, Ending::kReplan, "context_above_plan", FirstCause(v.now, v.run.failures, v.config.cause)},
                  v.run.context.sentence()};
}

// The ranks of one node did not start, so the others wait for them in vain.
std::optional<Decision> DecideHostRoom(const DecideView& v) {
  if (v.run.host_room.empty()) return std::nullopt;
  return Decision{EndEpoch{false, Ending::kReplan, "host_memory_short", FirstCause(v.now, v.run.failures, v.config.cause)},
                  v.run.host_room};
}

// What the ranks do beside their steps, as the first node says that says anything; empty: nothing that takes long.
std::string DoingBeside(const DecideView& v) {
  for (const RankRun& rank : v.run.ranks) {
    const auto node = v.state.nodes.find(NodeOf(rank.device));
    if (node != v.state.nodes.end() && node->second.connected && !node->second.doing.empty())
      return CleanLine(node->second.doing);
  }
  return "";
}

std::string Training(const DecideView& v) {
  const std::string doing = DoingBeside(v);
  return doing.empty() ? "training" : doing;
}

Decision DecideActive(const DecideView& v) {
  if (AllGone(v.state, v.run) && v.run.failures.empty()) {
    if (v.job.step >= v.job.config.training.steps) {
      return {Finish{JobPhase::kSucceeded}, AllStepsDone(v.job)};
    }
    return {EndEpoch{false, Ending::kFail, "rank_failed", std::nullopt},
            absl::StrFormat("all ranks ended after step %d of %d without saying why", v.job.step, v.job.config.training.steps)};
  }
  if (auto context = DecideContext(v)) return *context;
  if (auto room = DecideHostRoom(v)) return *room;
  if (auto failure = DecideFailure(v)) return *failure;
  const bool running = v.run.stage == Stage::kRunning;
  if (v.job.stop_requested) {
    return {EndEpoch{running, Ending::kStop, "", std::nullopt},
            running ? "saving a checkpoint, then stops, as the user asked" : "stopping, as the user asked"};
  }
  if (auto leaving = DecideLeaving(v)) return *leaving;
  if (auto yield = DecideYield(v)) return *yield;
  if (!running) return DecideStarting(v);
  if (v.changed() && (v.settled() || !AnyAdded(v))) {
    return {EndEpoch{true, Ending::kReplan, AnyAdded(v) ? "joined" : "drained", std::nullopt}, DescribeChange(v)};
  }
  if (!v.run.measure_again.empty()) {
    return {EndEpoch{true, Ending::kReplan, "measured_again", std::nullopt}, v.run.measure_again};
  }
  if (!v.run.checkpoint_trouble.empty()) return {KeepOn{}, absl::StrCat(Training(v), "; ", v.run.checkpoint_trouble)};
  if (v.run.slow_rank.slow()) return {KeepOn{}, absl::StrCat(Training(v), "; ", v.run.slow_rank.Sentence(v.job.id))};
  if (!v.run.prediction.sentence().empty()) return {KeepOn{}, absl::StrCat(Training(v), "; ", v.run.prediction.sentence())};
  return {KeepOn{}, Training(v)};
}

Decision DecideStopping(const DecideView& v) {
  if (AllGone(v.state, v.run)) return {EpochEnded{}, v.run.ending_reason};
  if (v.run.saving) {
    if (auto cause = FirstCause(v.now, v.run.failures, v.config.cause))
      return {KillEpoch{*cause}, absl::StrCat(v.run.ending_reason, "; while saving ", Describe(*cause))};
    if (v.in_stage() > v.config.save_timeout) {
      return {KillEpoch{std::nullopt}, absl::StrFormat("%s; saving took longer than %.0f s", v.run.ending_reason,
                                                       absl::ToDoubleSeconds(v.config.save_timeout))};
    }
    const std::string doing = DoingBeside(v);
    return {KeepOn{}, absl::StrCat(doing.empty() ? "saving a checkpoint" : doing, ": ", v.run.ending_reason)};
  }
  if (v.in_stage() > v.config.kill_timeout) return {EpochEnded{}, v.run.ending_reason};
  return {KeepOn{}, v.run.ending_reason};
}

Decision DecideStage(const DecideView& v) {
  if (v.state.stops_at && (v.run.stage == Stage::kIdle || v.run.stage == Stage::kStorage || v.run.stage == Stage::kPlanning)) {
    return {KeepOn{}, "the coordinator was told to end; the job goes on when it is back"};
  }
  switch (v.run.stage) {
    case Stage::kIdle:
      return DecideIdle(v);
    case Stage::kStorage:
      return DecideStorage(v);
    case Stage::kProfiling:
      return DecideProfiling(v);
    case Stage::kPlanning:
      return DecidePlanning(v);
    case Stage::kStarting:
    case Stage::kRunning:
      return DecideActive(v);
    case Stage::kStopping:
      return DecideStopping(v);
  }
  return {KeepOn{}, ""};
}

}  // namespace

Decision Decide(absl::Duration now, const ClusterState& state, const DriverConfig& config) {
  const JobRun& run = *state.run;
  const DecideView view{now, state, config, run, state.jobs.at(run.job), UsableDevices(state, run)};
  Decision decision = DecideStage(view);
  // People are told as long as it lasts. How an epoch ends is said as it was.
  if (run.stage == Stage::kStopping) return decision;
  const auto* keep = std::get_if<KeepOn>(&decision.action);
  if ((keep != nullptr && !keep->lends) || std::holds_alternative<MarkRunning>(decision.action)) {
    for (const std::string& more : {WithoutWhom(state, run), BorrowerSentence(state)}) {
      if (!decision.reason.empty() && !more.empty()) absl::StrAppend(&decision.reason, "; ", more);
    }
  }
  return decision;
}

Decision DecideAside(absl::Duration now, const ClusterState& state, const JobRun& run, const DriverConfig& config) {
  return DecideIdle({now, state, config, run, state.jobs.at(run.job), UsableDevices(state, run, NotRefused(state, run))});
}

}  // namespace motley::coordinator
