// JudgeNodes and JudgeClocks.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/session/host_lateness.h"
#include "coordinator/state/data_address.h"
#include "coordinator/state/examination_findings.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

constexpr int64_t kClockNoteMs = 1000;
constexpr absl::Duration kRefusedLately = absl::Minutes(10);

std::string Ago(absl::Duration d) {
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(d));
  if (seconds < 120) return absl::StrCat(seconds, " s ago");
  return seconds < 7200 ? absl::StrCat(seconds / 60, " min ago") : absl::StrCat(seconds / 3600, " h ago");
}

Finding JudgeNode(absl::Duration now, const ClusterState& state, const NodeRecord& node) {
  const std::string name = node.description.name.value(), is = NodeStateName(state, node);
  const std::string why = node.reason.empty() ? "" : absl::StrCat(": ", node.reason);
  Finding finding{FindingState::kOk, absl::StrCat("node ", name), ""};
  if (is == "lost") {
    return {FindingState::kWrong, finding.what,
            absl::StrCat("lost, last heard of ", Ago(now - node.last_seen), why,
                         "; start motley-worker on it again, or look at its log")};
  }
  if (is == "left") {
    finding.text = absl::StrCat("left ", Ago(now - node.last_seen), why,
                                "; it is back when motley-worker is started on it, and `motley node forget ", name,
                                "` takes it off the lists");
    return finding;
  }
  if (is == "refused") {
    return {FindingState::kWrong, finding.what, absl::StrCat("refused by the job that runs", why)};
  }
  if (const std::string wrong = WhyDataAddressIsWrong(state, node); !wrong.empty()) {
    return {FindingState::kWrong, finding.what, absl::StrCat(is, ", but ", wrong)};
  }
  finding.text = absl::StrCat(is, ", ", Count(node.description.devices.size(), "device"), ", version ", node.description.version,
                              ", data address ", node.description.data_address);
  if (is == "drained" || is == "draining") {
    finding.state = FindingState::kWarning;
    absl::StrAppend(&finding.text, "; no plan uses it until `motley nodes undrain ", name, "`");
  } else if (is == "held" || is == "leaving") {
    finding.state = FindingState::kWarning;
    absl::StrAppend(&finding.text, why);
  }
  return finding;
}

// A node that computes on something else than its cards slows every plan down that it is part of.
void JudgeCards(const ClusterState& state, std::vector<Finding>* findings) {
  std::vector<Finding> rows;
  for (const auto& [name, node] : state.nodes) {
    const std::vector<UnusedCard>& unused = node.description.unused_cards;
    const std::vector<DeviceDescription>& devices = node.description.devices;
    const bool offers_one =
        std::any_of(devices.begin(), devices.end(), [](const auto& device) { return device.kind == DeviceKind::kCuda; });
    if (!node.connected || unused.empty() || offers_one) continue;
    const std::string others = unused.size() == 1 ? "" : absl::StrCat("; and ", Count(unused.size() - 1, "more card"));
    rows.push_back({FindingState::kWarning, absl::StrCat("cards of ", name.value()),
                    absl::StrCat("it offers none of them: ", unused.front().card, ": ", unused.front().reason, others)});
  }
  AppendSome(std::move(rows), "cards", findings);
}

// Of the newest step of the job that runs.
void JudgeHost(const ClusterState& state, std::vector<Finding>* findings) {
  const auto job = state.run ? state.jobs.find(state.run->job) : state.jobs.end();
  if (job == state.jobs.end() || job->second.last_step.epoch != job->second.epoch) return;
  const StepStats& step = job->second.last_step;
  const std::string late = HostLateness(step.lateness_seconds, step.step_seconds);
  if (late.empty()) return;
  findings->push_back({FindingState::kWarning, "host", absl::StrCat("in job ", job->first.value(), " it is ", late)});
}

// Whoever may write into a job's folders on such a node leads its ranks elsewhere by a link.
void JudgeFiles(const ClusterState& state, std::vector<Finding>* findings) {
  std::vector<Finding> rows;
  for (const auto& [name, node] : state.nodes) {
    const std::string& why = node.description.files_not_held;
    if (!node.connected || why.empty()) continue;
    rows.push_back({FindingState::kWarning, absl::StrCat("files of ", name.value()),
                    absl::StrCat("the kernel does not hold ranks to [files] roots: ", why,
                                 "; let nobody but the worker's user write there")});
  }
  AppendSome(std::move(rows), "files", findings);
}

// A shared file system compares numbers: what one writes, another may not replace.
void JudgeUsers(const ClusterState& state, std::vector<Finding>* findings) {
  std::map<std::string, std::vector<std::string>> nodes;
  for (const auto& [name, node] : state.nodes) {
    if (node.connected && !node.description.user.empty()) nodes[CleanText(node.description.user)].push_back(name.value());
  }
  if (nodes.size() < 2) return;
  std::vector<std::string> parts;
  for (const auto& [user, names] : nodes) {
    const std::string others = names.size() == 1 ? "" : absl::StrCat(" and ", Count(names.size() - 1, "more node"));
    parts.push_back(absl::StrCat(user, " on ", names.front(), others));
  }
  findings->push_back({FindingState::kWarning, "users",
                       absl::StrCat("workers run under different numbers of user and group: ", absl::StrJoin(parts, "; "),
                                    ". In a shared folder one may not replace what another wrote; give motley-worker the same ",
                                    "numbers on all machines (docs/use/two-machines.md)")});
}

void JudgeRefusedWorkers(absl::Duration now, const ClusterState& state, std::vector<Finding>* findings) {
  std::vector<Finding> rows;
  for (const auto& [name, refused] : state.refused_workers) {
    if (now - refused.at > kRefusedLately) continue;
    rows.push_back({FindingState::kWrong, absl::StrCat("worker ", name),
                    absl::StrCat("refused ", Ago(now - refused.at), ": ", refused.why)});
  }
  AppendSome(std::move(rows), "workers", findings);
}

// Whether the cluster is ready for the day on which the coordinator's machine is lost, where somebody has begun to make it so.
void JudgeMoving(const ClusterState& state, std::vector<Finding>* findings) {
  if (!state.rival.empty()) findings->push_back({FindingState::kWrong, "coordinators", state.rival});
  if (!state.backup_problem.empty())
    findings->push_back({FindingState::kWrong, "backups", absl::StrCat("the store is not backed up: ", state.backup_problem)});
  const bool may_move = std::any_of(state.members.begin(), state.members.end(),
                                    [](const auto& entry) { return entry.second.coordinators.size() > 1; });
  std::vector<Finding> rows;
  for (const auto& [name, member] : state.members) {
    if (!may_move || member.coordinators.size() != 1) continue;
    rows.push_back({FindingState::kWarning, absl::StrCat("node ", name.value()),
                    absl::StrCat("its worker.coordinator names ", member.coordinators.front(),
                                 " alone, others name several: it stays away when another machine takes over")});
  }
  AppendSome(std::move(rows), "coordinators", findings);
}

}  // namespace

std::vector<Finding> JudgeNodes(absl::Duration now, const ClusterState& state) {
  std::vector<Finding> findings, well, others;
  for (const auto& [name, node] : state.nodes) {
    if (node.forgotten) continue;
    Finding finding = JudgeNode(now, state, node);
    (finding.state == FindingState::kOk ? well : others).push_back(std::move(finding));
  }
  if (state.nodes.empty()) {
    findings.push_back({FindingState::kWrong, "nodes",
                        "none has joined; start motley-worker on a machine; its log says why where it has no session with the "
                        "coordinator"});
  } else if (well.size() > kMostFindings) {
    findings.push_back({FindingState::kOk, "nodes", absl::StrCat(well.size(), " are ready; `motley nodes` lists them")});
  } else {
    findings = std::move(well);
  }
  AppendSome(std::move(others), "nodes", &findings);
  JudgeCards(state, &findings);
  JudgeHost(state, &findings);
  JudgeFiles(state, &findings);
  JudgeUsers(state, &findings);
  JudgeMoving(state, &findings);
  JudgeRefusedWorkers(now, state, &findings);
  return findings;
}

std::vector<Finding> JudgeClocks(const ClusterState& state) {
  std::vector<Finding> findings, off;
  size_t known = 0;
  int64_t most = 0;
  for (const auto& [name, node] : state.nodes) {
    const std::optional<ClockOffset::Estimate> clock = node.clock.estimate();
    if (!node.connected || !clock) continue;
    ++known;
    const double seconds = std::abs(static_cast<double>(clock->offset_ms)) / 1e3,
                 margin = static_cast<double>(clock->margin_ms) / 1e3;
    if (clock->beyond(kClockNoteMs)) {
      off.push_back({FindingState::kWarning, absl::StrCat("clock of ", name.value()),
                     absl::StrFormat("%.1f s %s the coordinator's (+- %.2f s); nothing that decides uses it, but logs of two "
                                     "machines are hard to read side by side: run an NTP service",
                                     seconds, clock->offset_ms > 0 ? "ahead of" : "behind", margin)});
    } else {
      most = std::max(most, std::abs(clock->offset_ms));
    }
  }
  if (known > off.size()) {
    findings.push_back({FindingState::kOk, "clocks",
                        absl::StrFormat("of %s: within %s of the coordinator's", Count(known - off.size(), "node"),
                                        most < kClockNoteMs ? absl::StrFormat("%.2f s", static_cast<double>(most + 9) / 1e3)
                                                            : "what can be known")});
  }
  AppendSome(std::move(off), "clocks", &findings);
  return findings;
}

}  // namespace motley::coordinator
