#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coordinator/state/data_verdict.h"
#include "coordinator/state/decide_view.h"
#include "coordinator/state/initial_weights.h"
#include "coordinator/state/setup_reach.h"

namespace motley::coordinator {
namespace {

// What is wrong with what a node said of the job's data and folder.
struct Complaint {
  std::string text;
  absl::StatusCode code = absl::StatusCode::kFailedPrecondition;
};

bool SeesFolder(const DecideView& v, const NodeName& node, const StorageAnswer& answer) {
  return v.run.token.empty() || node == v.run.token_writer || answer.report.token_seen;
}

bool IsSound(const DecideView& v, const NodeName& node, const StorageAnswer& answer) {
  return answer.answered && answer.report.error.empty() && SeesFolder(v, node, answer);
}

// The node that wrote the token may be the one with another folder: it is when most of the others do not see what it wrote.
bool WriterIsOdd(const DecideView& v) {
  int asked = 0, blind = 0;
  for (const auto& [node, answer] : v.run.storage) {
    if (node == v.run.token_writer || !answer.answered || !answer.report.error.empty()) continue;
    ++asked;
    blind += !answer.report.token_seen;
  }
  return !v.run.token.empty() && blind >= 2 && 2 * blind > asked;
}

// It could not look, for want of descriptors, processes or memory: it says something of itself alone.
bool CouldNotLook(const StorageAnswer& answer) {
  return answer.answered && !answer.report.error.empty() && answer.report.error_code == kCheckNotStarted;
}

// What the job began with; before that, what most nodes hold, and of two kinds with as many the one of the first node.
DataReference ReferenceOf(const DecideView& v) {
  if (!v.job.data.digest.empty()) return {v.job.data, v.job.validation, NodeName()};
  const auto key = [](const StorageAnswer& answer) { return DataKey(answer.report.data, answer.report.validation); };
  std::map<std::string, int> count;
  for (const auto& [node, answer] : v.run.storage) count[key(answer)] += IsSound(v, node, answer);
  DataReference most;
  int times = 0;
  for (const auto& [node, answer] : v.run.storage) {
    if (!IsSound(v, node, answer) || count[key(answer)] <= times) continue;
    times = count[key(answer)];
    most = {answer.report.data, answer.report.validation, node};
  }
  return most;
}

WeightsReference WeightsOf(const DecideView& v) {
  std::vector<std::pair<NodeName, std::string>> digests;
  for (const auto& [node, answer] : v.run.storage) {
    if (IsSound(v, node, answer)) digests.emplace_back(node, answer.report.initial_digest);
  }
  return ReferenceOfWeights(v.job, digests);
}

// By node. Those that did not answer are among them when it is too late.
std::map<NodeName, Complaint> Complaints(const DecideView& v, const DataReference& reference, bool late) {
  std::map<NodeName, Complaint> complaints;
  const WeightsReference reference_weights = WeightsOf(v);
  for (const auto& [node, answer] : v.run.storage) {
    const StorageReport& report = answer.report;
    if (CouldNotLook(answer)) continue;
    if (!answer.answered) {
      if (!late || !answer.asked) continue;
      complaints[node].code = absl::StatusCode::kUnavailable;
      complaints[node].text =
          absl::StrFormat("the storage check was not answered within %.0f s: see whether '%s' can be read there",
                          absl::ToDoubleSeconds(v.config.storage_timeout), v.job.config.data.path);
    } else if (!report.error.empty()) {
      complaints[node] = {report.error, report.error_code};
    } else if (!SeesFolder(v, node, answer)) {
      complaints[node].text = absl::StrCat("checkpoint.folder '", v.job.config.checkpoint.folder,
                                           "' is not the same folder as on node ", v.run.token_writer.value(),
                                           ": what that node wrote cannot be read; use a folder that all nodes share, or "
                                           "leave checkpoint.folder out: the nodes keep checkpoints on their own disks then");
    } else if (std::string other = OtherData(v.job.config, report, reference); !other.empty()) {
      complaints[node].text = std::move(other);
    } else if (std::string weights = WeightsComplaint(v.job, reference_weights, report); !weights.empty()) {
      complaints[node].text = std::move(weights);
    }
  }
  return complaints;
}

Decision LeaveOutThose(std::map<NodeName, std::string> nodes) {
  std::string reason = absl::StrJoin(nodes, "; ", [](std::string* text, const auto& entry) {
    absl::StrAppend(text, "node ", entry.first.value(), " is left out: ", entry.second);
  });
  return {LeaveOutNodes{std::move(nodes)}, std::move(reason)};
}

// By node: who could not look, and why.
std::map<NodeName, std::string> Blind(const DecideView& v) {
  std::map<NodeName, std::string> blind;
  for (const auto& [node, answer] : v.run.storage) {
    if (CouldNotLook(answer)) blind[node] = answer.report.error;
  }
  return blind;
}

// Nobody is there to go on with, or nobody knows who is right.
Decision GiveUp(const DecideView& v, const NodeName& node, const Complaint& complaint) {
  std::string reason = absl::StrCat("node ", node.value(), ": ", complaint.text);
  const StorageAnswer& answer = v.run.storage.at(node);
  if (!v.job.data.digest.empty() && IsSound(v, node, answer)) {  // the job's data was changed, and not one node's copy of it
    absl::StrAppend(&reason, "; put it back, or begin a new job",
                    v.job.newest_checkpoint.empty() ? "" : absl::StrCat(" with checkpoint.initial = '", v.job.id.value(), "'"));
  }
  return {Finish{JobPhase::kFailed, complaint.code}, std::move(reason)};
}

}  // namespace

std::optional<Decision> StorageVerdict(const DecideView& v) {
  const auto waits = [](const auto& entry) { return entry.second.asked && !entry.second.answered; };
  const bool late = v.in_stage() > v.config.storage_timeout;
  if (!late && std::any_of(v.run.storage.begin(), v.run.storage.end(), waits)) return std::nullopt;
  if (v.run.has_run && WriterIsOdd(v)) {
    return LeaveOutThose({{v.run.token_writer, absl::StrCat("checkpoint.folder '", v.job.config.checkpoint.folder,
                                                            "' is not the folder of the other nodes; use a folder that all "
                                                            "nodes share")}});
  }
  const DataReference reference = ReferenceOf(v);
  for (const auto& [node, answer] : v.run.storage) {
    if (!IsSound(v, node, answer) || !OtherData(v.job.config, answer.report, reference).empty()) continue;
    const absl::Status data = CheckJobsData(v.job.config, answer.report);
    if (data.ok()) break;
    // Too short for one is too short for all whose digest is this.
    return Decision{Finish{JobPhase::kFailed, data.code()}, std::string(data.message())};
  }
  const std::map<NodeName, Complaint> complaints = Complaints(v, reference, late);
  std::map<NodeName, std::string> out = Blind(v);
  if (complaints.empty() && out.empty()) return std::nullopt;
  // What is right was settled when the job's ranks first started. Before, it is what most nodes see: the first to come may be the
  // one that is wrong.
  const bool settled = v.run.has_run || v.job.started_unix_ms > 0;
  std::set<NodeName> nodes;  // those that passed before are not asked again
  for (const DeviceDescription& device : v.run.considered) nodes.insert(NodeOf(device.id));
  for (const auto& [node, why] : out) nodes.erase(node);
  // Nothing is known against data and folder, and descriptors are free again some day.
  if (nodes.empty()) {
    return Decision{RetryLater{}, absl::StrCat("node ", out.begin()->first.value(), ": ", out.begin()->second)};
  }
  const size_t others = nodes.size() - complaints.size();
  if (!complaints.empty() && (settled ? others == 0 : 2 * others <= nodes.size())) {
    return GiveUp(v, complaints.begin()->first, complaints.begin()->second);
  }
  for (const auto& [node, complaint] : complaints) out[node] = complaint.text;
  return LeaveOutThose(std::move(out));
}

std::optional<Decision> ReachVerdict(const DecideView& v, bool all_else) {
  // Who says nothing accuses nobody: its ranks will say what they see.
  const bool waits = !v.run.reach.unanswered.empty() && v.in_stage() <= v.config.probe.reach_timeout;
  if (waits && all_else) {
    return Decision{KeepOn{},
                    absl::StrCat("looking whether the nodes reach each other; waiting for ",
                                 absl::StrJoin(v.run.reach.unanswered, ", ",
                                               [](std::string* out, const NodeName& node) { out->append(node.value()); }))};
  }
  if (waits || v.run.reach.broken.empty()) return std::nullopt;
  std::map<NodeName, std::string> out = OutOfReach(v.state, v.run);
  if (out.empty()) return std::nullopt;
  std::string reason = absl::StrJoin(out, "; ", [](std::string* text, const auto& entry) {
    absl::StrAppend(text, "node ", entry.first.value(), " is left out: ", entry.second);
  });
  return Decision{LeaveOutUnreached{std::move(out)}, std::move(reason)};
}

}  // namespace motley::coordinator
