// JudgePaths.
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/data/data_size.h"
#include "coordinator/state/examination_findings.h"

namespace motley::coordinator {
namespace {

std::string DataComplaint(const Examination& e, const NodeName& node, const StorageReport& report, const NodeName& first) {
  if (!report.error.empty()) return absl::StrCat("node ", node.value(), ": ", report.error);
  const StorageReport& other = e.read.at(first);
  if (report.data.digest == other.data.digest) return "";
  return absl::StrFormat("node %s has other data (%s, digest %s) than node %s (%s, digest %s); copy the same data to both",
                         node.value(), SizeText(report.data), report.data.digest.substr(0, 12), first.value(),
                         SizeText(other.data), other.data.digest.substr(0, 12));
}

// Who is there and has not answered.
std::vector<NodeName> Missing(const Examination& e, const std::map<NodeName, StorageReport>& answers) {
  std::vector<NodeName> missing;
  for (const auto& [name, incarnation] : e.nodes) {
    if (!answers.contains(name) && !e.gone.contains(name)) missing.push_back(name);
  }
  return missing;
}

// Every node was lost meanwhile.
Finding NobodyLeft(const char* what) { return {FindingState::kLeftOut, what, "no node is there any more that could be asked"}; }

Finding NoAnswer(const char* what, const std::string& path, const std::vector<NodeName>& nodes, absl::Duration limit) {
  return {FindingState::kWrong, what,
          absl::StrFormat("%s: no answer within %.0f s from %s; is the file system mounted and its server there?%s",
                          CleanLine(path), absl::ToDoubleSeconds(limit), SomeNames(nodes),
                          std::string_view(what) == "data" ? " Reading a large data set takes longer than that, too" : "")};
}

void JudgeData(const Examination& e, std::vector<Finding>* findings) {
  const std::string path = CleanLine(e.request.data_path);
  std::vector<Finding> wrong;
  NodeName first;
  for (const auto& [node, report] : e.read) {
    if (first.empty() && report.error.empty()) first = node;
  }
  for (const auto& [node, report] : e.read) {
    const std::string complaint = DataComplaint(e, node, report, first.empty() ? node : first);
    if (!complaint.empty()) wrong.push_back({FindingState::kWrong, "data", complaint});
  }
  const std::vector<NodeName> missing = Missing(e, e.read);
  if (!missing.empty()) wrong.push_back(NoAnswer("data", path, missing, e.limits.read_data));
  if (wrong.empty() && first.empty()) return findings->push_back(NobodyLeft("data"));
  if (wrong.empty()) {
    const StorageReport& report = e.read.at(first);
    findings->push_back({FindingState::kOk, "data",
                         absl::StrFormat("%s: %s, the same on %s (digest %s)", path, SizeText(report.data),
                                         Count(e.read.size(), "node"), report.data.digest.substr(0, 12))});
  }
  AppendSome(std::move(wrong), "data", findings);
}

void JudgeFolder(const Examination& e, std::vector<Finding>* findings) {
  const std::string path = CleanLine(e.request.checkpoint_folder);
  std::vector<Finding> wrong;
  for (const auto& [node, report] : e.written) {
    if (!report.error.empty())
      wrong.push_back({FindingState::kWrong, "folder", absl::StrCat("node ", node.value(), ": ", report.error)});
  }
  std::vector<NodeName> blind;
  for (const auto& [node, report] : e.read) {
    // An error is the data's, or was said when the node should write.
    if (!e.writer.empty() && report.error.empty() && !report.token_seen) blind.push_back(node);
  }
  if (!blind.empty()) {
    wrong.push_back({FindingState::kWrong, "folder",
                     absl::StrCat(path, " is not one folder: what node ", e.writer.value(), " wrote is not seen by ",
                                  SomeNames(blind), "; mount the same file system at this path on all nodes")});
  }
  std::vector<NodeName> missing = Missing(e, e.written);
  if (!missing.empty()) wrong.push_back(NoAnswer("folder", path, missing, e.limits.write));
  const size_t wrote = e.written.size();
  if (wrong.empty() && wrote == 0) return findings->push_back(NobodyLeft("folder"));
  size_t seen = 0;
  for (const auto& [node, report] : e.read) seen += report.token_seen;
  if (wrong.empty()) {
    // Who could not read the data has not looked for the token.
    const bool all = seen == wrote;
    findings->push_back({all ? FindingState::kOk : FindingState::kWarning, "folder",
                         all ? absl::StrCat(path, ": ",
                                            wrote == 1 ? "the node writes it and reads it back"
                                                       : absl::StrCat("all ", wrote, " nodes write it and see what node ",
                                                                      e.writer.value(), " wrote"))
                             : absl::StrCat(path, ": all nodes write it; whether all see the same folder was said by ",
                                            Count(seen, "node"), " of ", wrote)});
  }
  AppendSome(std::move(wrong), "folder", findings);
}

}  // namespace

std::vector<Finding> JudgePaths(const Examination& e) {
  std::vector<Finding> findings;
  if (e.nodes.empty()) return findings;
  if (e.request.data_path.empty() && e.request.checkpoint_folder.empty()) {
    return {{FindingState::kLeftOut, "paths",
             "none was named; --data PATH and --folder FOLDER, or --job FILE, look at them on all nodes"}};
  }
  if (!e.request.data_path.empty()) JudgeData(e, &findings);
  if (!e.request.checkpoint_folder.empty()) JudgeFolder(e, &findings);
  return findings;
}

}  // namespace motley::coordinator
