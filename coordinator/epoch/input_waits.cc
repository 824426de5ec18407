#include "coordinator/epoch/input_waits.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/logging.h"
#include "common/job/job_input.h"
#include "coordinator/epoch/holdings_round.h"
#include "coordinator/state/initial_weights.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

// A job whose data nobody gives for so long ends.
constexpr absl::Duration kLongestAwaited = absl::Hours(24);

bool HasConnectedHolder(const Core& core, const InputKeeper& keeper) {
  return std::any_of(keeper.holders.begin(), keeper.holders.end(), [&](const NodeName& holder) {
    const auto node = core.state.nodes.find(holder);
    return node != core.state.nodes.end() && node->second.connected;
  });
}

// Ranks of the job run there: whatever the node has not said yet, they read it.
bool HasRanks(const Core& core, const JobId& job, const NodeName& node) {
  return core.state.run && core.state.run->job == job &&
         std::any_of(core.state.run->ranks.begin(), core.state.run->ranks.end(),
                     [&](const RankRun& rank) { return NodeOf(rank.device) == node && !IsGone(core.state, rank); });
}

void NoteWhoLacks(Core& core, const InputKeeper& keeper, const std::string& id, const JobRecord& job) {
  std::set<NodeName>& lacking = core.state.lacks_inputs[job.id];
  const std::optional<JobInput> initial = ParseInput(job.config.checkpoint.initial);
  const bool is_initial = initial && initial->id == id;
  for (const auto& [name, node] : core.state.nodes) {
    // An older worker takes the weights' input for a path.
    const bool has = keeper.holders.contains(name) && (!is_initial || node.description.protocol >= kFirstProtocolThatLists);
    if (MayBeUsed(node) && !has && !HasRanks(core, job.id, name)) lacking.insert(name);
  }
}

// "node b has 41 % of 268435456 bytes".
std::string Coming(const InputKeeper& keeper) {
  std::vector<std::string> coming;
  for (const auto& [node, taker] : keeper.takers) {
    const double part = taker.bytes > 0 ? static_cast<double>(taker.bytes_here) / static_cast<double>(taker.bytes) : 0;
    coming.push_back(absl::StrFormat("node %s has %.0f %% of %s", node.value(), 100 * part, Count(taker.bytes, "byte")));
  }
  return absl::StrJoin(coming, ", ");
}

// Empty: the job need not wait for this one. Without numbers that change all the while but the percentage.
std::string WhatIsAwaited(const Core& core, const InputKeeper& keeper, const std::string& name, const JobRecord& job) {
  const std::string input = CleanLine(name);
  if (!keeper.asked) return absl::StrCat("the nodes are asked whether they have ", input);
  const bool some = HasConnectedHolder(core, keeper);
  // Who takes it as it comes may have it a moment before the one that gives it.
  if (!keeper.upload.empty() && (!some || !keeper.holders.contains(keeper.uploads_to))) {
    const std::string others = Coming(keeper);
    return absl::StrCat(input, " is sent to node ", keeper.uploads_to.value(), others.empty() ? "" : ", from there ", others);
  }
  if (!some) {
    return absl::StrCat(input, " lies on no node that is here; 'motley submit' with the same file and --id ", job.id.value(),
                        " sends it, or goes on with it");
  }
  const std::string coming = Coming(keeper);
  if (!coming.empty()) return absl::StrCat(input, " comes to the nodes: ", coming);
  if (std::any_of(keeper.holders.begin(), keeper.holders.end(), [&](const NodeName& holder) {
        const auto node = core.state.nodes.find(holder);
        return node != core.state.nodes.end() && MayBeUsed(node->second);
      }))
    return "";
  std::string why;
  for (const auto& [node, said] : keeper.failed) absl::StrAppend(&why, "; node ", node.value(), ": ", said);
  return absl::StrCat("no node that may be used has ", input, why);
}

}  // namespace

WantedInputs WantedBy(const ClusterState& state) {
  WantedInputs wanted;
  for (const auto& [id, job] : state.jobs) {
    if (IsFinal(job.phase)) continue;
    for (const JobInput& input : InputsNow(job)) {
      wanted[input.id].name = input.name;
      wanted[input.id].jobs.push_back(&job);
    }
  }
  return wanted;
}

void NoteWhoWaits(Core& core, const WantedInputs& wanted) {
  core.state.lacks_inputs.clear();
  core.state.awaits_inputs.clear();
  for (const auto& [id, input] : wanted) {
    const InputKeeper& keeper = core.inputs.at(id);
    for (const JobRecord* job : input.jobs) {
      NoteWhoLacks(core, keeper, id, *job);
      const std::string awaited = WhatIsAwaited(core, keeper, input.name, *job);
      if (!awaited.empty()) core.state.awaits_inputs.emplace(job->id, awaited);
    }
  }
}

void EndJobsInVain(Core& core, const WantedInput& input, InputKeeper& keeper) {
  const absl::Duration now = core.clock.Now();
  if (!keeper.asked || HasConnectedHolder(core, keeper) || !keeper.upload.empty()) return keeper.awaited.reset();
  if (!keeper.awaited) keeper.awaited = now;
  if (now - *keeper.awaited < kLongestAwaited) return;
  for (const JobRecord* const job : input.jobs) {
    const bool for_long = core.journal.UnixMs() - job->submitted_unix_ms >= absl::ToInt64Milliseconds(kLongestAwaited);
    if (job->phase != JobPhase::kQueued || !for_long) continue;
    Batch batch;
    batch.jobs.push_back(
        WithPhase(*job, JobPhase::kFailed,
                  absl::StrCat(CleanLine(input.name), " lay on no node that was here for ", absl::FormatDuration(kLongestAwaited),
                               ", and nobody sent it; submit the job again where it lies, or resume it when a "
                               "node that has it is back")));
    batch.jobs[0].finished_unix_ms = core.journal.UnixMs();
    batch.events.push_back(PhaseEvent(*job, batch.jobs[0]));
    const absl::Status status = core.journal.Commit(batch);
    if (!status.ok())
      return LogError(absl::StrCat("job ", job->id.value(), " could not be ended: ", std::string(status.message())));
    core.state.jobs.at(job->id) = batch.jobs[0];
  }
}

}  // namespace motley::coordinator
