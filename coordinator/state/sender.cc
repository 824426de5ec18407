#include "coordinator/state/sender.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/count.h"
#include "common/checkpoint/checkpoint.h"
#include "common/session/rendezvous_key.h"

namespace motley::coordinator {
namespace {

Standing Foreign(std::string why) { return {Standing::kForeign, std::move(why)}; }

// What clocks measured and schedules gave. What training gave, losses and norms, may be any number: the step was made all the
// same.
bool IsPossible(const StepReport& report) {
  const StepStats& stats = report.stats;
  const LaneSeconds& lanes = report.lanes;
  std::vector<double> numbers = {stats.lr,
                                 stats.step_seconds,
                                 stats.loss_scale,
                                 stats.lateness_seconds,
                                 report.lateness_seconds,
                                 lanes.collective,
                                 lanes.hand_over,
                                 lanes.bubble,
                                 lanes.host,
                                 lanes.copy};
  numbers.insert(numbers.end(), lanes.busy.begin(), lanes.busy.end());
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
}

struct JudgeReport {
  const ClusterState& state;
  const NodeName& node;

  // Reports of an old epoch, and of one whose ranks are all gone, are dropped by their handlers.
  template <typename Report>
  bool Matters(const Report& report) const {
    return IsCurrent(state, report) && !state.run->ranks.empty();
  }
  bool TrainsNow() const { return state.run->stage == Stage::kStarting || state.run->stage == Stage::kRunning; }
  Standing OfRank(int rank, const char* what) const {
    if (HostsRank(*state.run, node, rank)) return {};
    return Foreign(absl::StrCat(what, " of rank ", rank, ", which is not on this node"));
  }
  // A rank speaks of groups whose first member it is and of hand-overs that it sends, of each once; all are devices that have a
  // rank.
  Standing OfRanks(const std::vector<TransportUse>& uses, const DeviceId& speaker) const {
    std::set<DeviceId> devices;
    for (const RankRun& rank : state.run->ranks) devices.insert(rank.device);
    std::set<std::pair<int, std::vector<DeviceId>>> seen;
    for (const TransportUse& use : uses) {
      constexpr int kHandOvers = -1;
      const bool is_own = !use.devices.empty() && use.devices.front() == speaker && (use.group || use.devices.size() == 2);
      if (!is_own || !seen.emplace(use.group.value_or(kHandOvers), use.devices).second)
        return Foreign("a transport that is another rank's to say, or was said");
      for (const DeviceId& device : use.devices) {
        if (!devices.contains(device)) return Foreign(absl::StrCat("the transport of device ", device.value().substr(0, 80)));
      }
    }
    return {};
  }

  // About the sender itself.
  Standing operator()(const HeartbeatReport&) const { return {}; }
  Standing operator()(const ReachReport&) const { return {}; }
  Standing operator()(const LeavingReport&) const { return {}; }
  // Only answers to what this node was asked are looked at.
  Standing operator()(const StorageReport&) const { return {}; }
  Standing operator()(const HoldingsReport&) const { return {}; }

  Standing operator()(const ProfileReport& report) const {
    for (const ComputeProfile& profile : report.compute) {
      if (NodeOf(profile.device) != node) return Foreign(absl::StrCat("a profile of device ", profile.device.value()));
    }
    if (!report.check_id.empty() || !Matters(report) || report.collectives.points.empty()) return {};
    return OfRank(0, "the collectives");
  }
  Standing operator()(const RankReport& report) const {
    if (NodeOf(report.device) != node) return Foreign(absl::StrCat("the state of device ", report.device.value()));
    if (!Matters(report)) return {};
    const JobRun& run = *state.run;
    const bool named = run.ranks_in_order ? HostsRank(run, node, report.rank) && run.ranks[report.rank].device == report.device
                                          : std::any_of(run.ranks.begin(), run.ranks.end(),
                                                        [&](const RankRun& rank) { return rank.device == report.device; });
    if (named) return OfRanks(report.transports, report.device);
    return Foreign(absl::StrCat("rank ", report.rank, " on device ", report.device.value(), ", which has another rank or none"));
  }
  Standing operator()(const StepReport& report) const {
    if (!Matters(report)) return {};
    if (Standing standing = OfRank(report.rank, "a step"); standing.kind != Standing::kOwn) return standing;
    const JobRecord& job = state.jobs.at(report.job);
    const int64_t step = report.stats.step, last = job.config.training.steps;
    if (step < 1 || step > last) return Foreign(absl::StrCat("step ", step, " of a job of ", Count(last, "step")));
    if (!IsPossible(report)) return Foreign(absl::StrCat("step ", step, " with a time or rate that is not finite"));
    if (report.rank != 0) return {};
    // A worker that dials again repeats the newest step, which may be all that a restarted coordinator hears of it.
    if (step == job.step && !TrainsNow()) return {};
    if (step <= job.step) return Foreign(absl::StrCat("step ", step, " after step ", job.step));
    // What was said while the session was broken is not known: afterwards a step only has to be later.
    if (!TrainsNow() || step == job.step + 1) return {};
    return {Standing::kGap, absl::StrCat("it reported step ", step, " after step ", job.step)};
  }
  Standing operator()(const KvSetReport& report) const {
    if (!Matters(report)) return {};
    const std::optional<int> owner = OwnerOfKey(report.key);
    return owner ? OfRank(*owner, "a key") : Foreign("a key that is no rank's");
  }
  Standing operator()(const KvGetReport& report) const {
    return Matters(report) ? OfRank(report.rank, "a question") : Standing();
  }
  Standing operator()(const PublishReport& report) const {
    return Matters(report) ? OfRank(report.rank, "a question") : Standing();
  }
  Standing operator()(const CheckpointReport& report) const {
    if (!Matters(report)) return {};
    if (Standing standing = OfRank(0, "a checkpoint"); standing.kind != Standing::kOwn) return standing;
    const JobRecord& job = state.jobs.at(report.job);
    const std::string folder = CheckpointPath(job, CheckpointFolderName(report.step, report.epoch.value()));
    // Another job, of another cluster, may have had that name.
    const std::string second = CheckpointPath(job, CheckpointFolderName(report.step, report.epoch.value(), job.uid));
    if (report.folder != folder && report.folder != second) {
      return Foreign(absl::StrCat("a checkpoint in '", report.folder.substr(0, 200), "', which is not '", folder, "'"));
    }
    if (!report.job_uid.empty() && report.job_uid != job.uid) return Foreign("a checkpoint of another job's uid");
    const bool possible = TrainsNow() || state.run->ranks_in_order
                              ? report.step >= state.run->first_step && report.step <= job.step
                              : report.step >= 0 && report.step <= job.config.training.steps;
    if (possible) return {};
    return Foreign(absl::StrCat("a checkpoint of step ", report.step, ", when step ", job.step, " is the newest"));
  }
  Standing operator()(const CheckpointFailedReport& report) const {
    if (!Matters(report)) return {};
    if (Standing standing = OfRank(0, "a checkpoint"); standing.kind != Standing::kOwn) return standing;
    const auto is_it = [&](const RankRun& rank) { return rank.device == report.blamed; };
    if (report.blamed.empty() || std::any_of(state.run->ranks.begin(), state.run->ranks.end(), is_it)) return {};
    return Foreign(absl::StrCat("the blame of device ", report.blamed.value().substr(0, 80)));
  }
  Standing operator()(const TraceReport& report) const {
    return Matters(report) ? OfRank(report.rank, "a timeline") : Standing();
  }
  Standing operator()(const FetchReport& report) const {
    if (!report.copy_id.empty()) return {};  // which nodes keep copies of what is told apart by that
    return !Matters(report) || HostsRank(*state.run, node) ? Standing() : Foreign("a fetch for ranks that it has not");
  }
  Standing operator()(const RenewalReport&) const {
    return state.members.contains(node) ? Standing() : Foreign("a question for a certificate, which only members have");
  }
  Standing operator()(const CardReport& report) const {
    const auto known = state.nodes.find(node);
    const auto is_it = [&](const DeviceDescription& device) { return device.id == report.device; };
    const bool offered = known != state.nodes.end() &&
                         std::any_of(known->second.description.devices.begin(), known->second.description.devices.end(), is_it);
    return offered ? Standing() : Foreign(absl::StrCat("the card of device ", report.device.value().substr(0, 80)));
  }
  Standing operator()(const LogReport& report) const {
    if (state.run && state.run->job == report.job && (HostsRank(*state.run, node) || state.run->probes.contains(node))) return {};
    // The last lines of ranks come after their end.
    auto nodes = state.ran_on.find(report.job);
    if (nodes != state.ran_on.end() && nodes->second.contains(node)) return {};
    return Foreign(
        absl::StrCat("a line for the log of job ", report.job.value().substr(0, 80), ", which has not run on this node"));
  }
};

}  // namespace

bool HostsRank(const JobRun& run, const NodeName& node) {
  return std::any_of(run.ranks.begin(), run.ranks.end(), [&](const RankRun& rank) { return NodeOf(rank.device) == node; });
}

bool HostsRank(const JobRun& run, const NodeName& node, int rank) {
  if (rank < 0 || static_cast<size_t>(rank) >= run.ranks.size()) return false;
  return run.ranks_in_order ? NodeOf(run.ranks[rank].device) == node : HostsRank(run, node);
}

Standing StandingOf(const ClusterState& state, const NodeName& node, const WorkerReport& report) {
  return std::visit(JudgeReport{state, node}, report);
}

const std::array<const char*, std::variant_size_v<WorkerReport>>& ReportKinds() {
  static constexpr std::array<const char*, std::variant_size_v<WorkerReport>> kKinds = {
      "heartbeat",  "storage",           "reach", "profile", "rank",  "step", "kv_set",  "kv_get",   "publish",
      "checkpoint", "checkpoint_failed", "log",   "leaving", "trace", "card", "renewal", "holdings", "fetch"};
  return kKinds;
}

std::string ReportKind(const WorkerReport& report) { return ReportKinds()[report.index()]; }

}  // namespace motley::coordinator
