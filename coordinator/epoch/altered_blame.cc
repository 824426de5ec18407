#include "coordinator/epoch/altered_blame.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/altered_way.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/leave_out.h"
#include "coordinator/epoch/setup.h"
#include "coordinator/state/cause.h"
#include "coordinator/state/setup_reach.h"

namespace motley::coordinator {
namespace {

constexpr int kMostAlterations = 3;

bool HasRankOn(const JobRun& run, const std::string& device) {
  return std::any_of(run.ranks.begin(), run.ranks.end(), [&](const RankRun& rank) { return rank.device.value() == device; });
}

// What a rank says of messages to itself, from another rank of the epoch; no node is accused by a third one.
std::optional<Way> WayOf(const Core& core, const Failure& failure) {
  const JobRun& run = *core.state.run;
  if (RemedyFor(failure) != Remedy::kReplan) return std::nullopt;
  const std::optional<AlteredWay> said = SaysAltered(failure.message);
  if (!said || !HasRankOn(run, said->sender) || !HasRankOn(run, said->receiver)) return std::nullopt;
  const Way way = {NodeOf(DeviceId(said->sender)), NodeOf(DeviceId(said->receiver))};
  const bool is_known = core.state.nodes.contains(way.first) && core.state.nodes.contains(way.second);
  return is_known && way.second == failure.node ? std::optional(way) : std::nullopt;
}

bool Touches(const Way& way, const NodeName& node) { return way.first == node || way.second == node; }

// Of the event of such a failure, as WayOf of the failure itself; `devices` are those of the job's epochs.
std::optional<Way> WayOf(const EventRecord& event, const std::set<DeviceId>& devices) {
  if (event.kind != kind::kRankLost && event.kind != kind::kRankFailed) return std::nullopt;
  const std::optional<AlteredWay> said = SaysAltered(event.message);
  if (!said || !devices.contains(DeviceId(said->sender)) || !devices.contains(DeviceId(said->receiver))) return std::nullopt;
  const Way way = {NodeOf(DeviceId(said->sender)), NodeOf(DeviceId(said->receiver))};
  return way.second == event.node ? std::optional(way) : std::nullopt;
}

void Recount(const EventRecord& event, const std::set<DeviceId>& devices, std::vector<Way>* ways) {
  if (event.kind == kind::kCheckpoint) ways->clear();
  if (event.kind == kind::kDeviceLeftOut) std::erase_if(*ways, [&](const Way& way) { return Touches(way, event.node); });
  if (const std::optional<Way> way = WayOf(event, devices)) ways->push_back(*way);
}

}  // namespace

void BlameForAltered(Core& core, const Failure& failure) {
  const std::optional<Way> way = WayOf(core, failure);
  if (!way) return;
  JobRun& run = *core.state.run;
  std::vector<Way>& ways = run.altered_ways;
  ways.push_back(*way);
  std::vector<Way> theirs;
  for (const NodeName& node : {way->first, way->second}) {
    std::vector<Way> of_node;
    std::copy_if(ways.begin(), ways.end(), std::back_inserter(of_node), [&](const Way& each) { return Touches(each, node); });
    if (of_node.size() > theirs.size()) theirs = std::move(of_node);
  }
  if (static_cast<int>(theirs.size()) < kMostAlterations) return;
  const NodeName node = RatherLeftOut(core.state, run, theirs);
  LeaveOut(core, node,
           absl::StrCat("the last of ", theirs.size(), " failures without a checkpoint between: ", failure.message,
                        ". Something on the way of its messages changes them (a middlebox, a card, a cable, memory): mend that, "
                        "then start its worker anew, which gives it another chance"));
  std::erase_if(ways, [&](const Way& each) { return Touches(each, node); });
}

absl::Status RecountAltered(Core& core) {
  constexpr int kPage = 1000;
  JobRun& run = *core.state.run;
  MOTLEY_ASSIGN_OR_RETURN(const std::set<DeviceId> devices, core.store.DevicesOf(run.job));
  std::vector<EventRecord> events;
  int64_t after = 0;
  do {
    MOTLEY_ASSIGN_OR_RETURN(events, core.store.EventsAfter(run.job, after, kPage));
    for (const EventRecord& event : events) Recount(event, devices, &run.altered_ways);
    if (!events.empty()) after = events.back().sequence;
  } while (events.size() == kPage);
  return absl::OkStatus();
}

void ForgetAltered(JobRun& run, const NodeDescription& node) {
  const bool is_known = std::any_of(run.ranks.begin(), run.ranks.end(), [&](const RankRun& rank) {
    return NodeOf(rank.device) == node.name && rank.incarnation == node.incarnation;
  });
  if (!is_known) std::erase_if(run.altered_ways, [&](const Way& way) { return Touches(way, node.name); });
}

}  // namespace motley::coordinator
