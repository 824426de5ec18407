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

// Of what all nodes read and report at once, in the order in which they do: what one cannot read it says nothing behind of.
struct ReadPath {
  const char* what;  // the row
  const char* key;   // of the job, with which errors begin
  std::string ExaminationRequest::*path;
  std::string (*digest)(const StorageReport& report);
  std::string (*size)(const StorageReport& report);
};

const ReadPath kInitial = {
    "initial", "checkpoint.initial", &ExaminationRequest::initial,
    [](const StorageReport& report) { return report.initial_digest; },
    [](const StorageReport& report) {
      return std::string(report.initial_digest.empty() ? "a folder of checkpoints" : "weights of HuggingFace");
    }};
const ReadPath kData = {"data", "data.path", &ExaminationRequest::data_path,
                        [](const StorageReport& report) { return report.data.digest; },
                        [](const StorageReport& report) { return SizeText(report.data); }};
const ReadPath kValidation = {"validation", "data.validation_path", &ExaminationRequest::validation_path,
                              [](const StorageReport& report) { return report.validation.digest; },
                              [](const StorageReport& report) { return SizeText(report.validation); }};

// An older worker's begin with no key: they are the data's.
bool IsOf(const ReadPath& read, const std::string& error) {
  if (&read != &kData) return error.starts_with(read.key);
  return !error.empty() && !IsOf(kInitial, error) && !IsOf(kValidation, error);
}

std::string ReadComplaint(const Examination& e, const ReadPath& read, const NodeName& node, const StorageReport& report,
                          const NodeName& first) {
  if (IsOf(read, report.error)) return absl::StrCat("node ", node.value(), ": ", report.error);
  if (!report.error.empty()) return "";  // which another row says
  const StorageReport& other = e.read.at(first);
  const std::string ours = read.digest(report), theirs = read.digest(other);
  if (ours == theirs) return "";
  return absl::StrFormat("node %s has other data (%s, digest %s) than node %s (%s, digest %s); copy the same data to both",
                         node.value(), read.size(report), ours.substr(0, 12), first.value(), read.size(other),
                         theirs.substr(0, 12));
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
                          std::string_view(what) != "folder" ? " Reading a large data set takes longer than that, too" : "")};
}

void JudgeRead(const Examination& e, const ReadPath& read, std::vector<Finding>* findings) {
  if ((e.request.*read.path).empty()) return;
  const std::string path = CleanLine(e.request.*read.path);
  std::vector<Finding> wrong;
  NodeName first;
  size_t well = 0;
  for (const auto& [node, report] : e.read) {
    if (!report.error.empty()) continue;
    if (well++ == 0) first = node;
  }
  for (const auto& [node, report] : e.read) {
    const std::string complaint = ReadComplaint(e, read, node, report, first);
    if (!complaint.empty()) wrong.push_back({FindingState::kWrong, read.what, complaint});
  }
  const std::vector<NodeName> missing = Missing(e, e.read);
  if (!missing.empty()) wrong.push_back(NoAnswer(read.what, path, missing, e.limits.read_data));
  if (wrong.empty() && e.read.empty()) return findings->push_back(NobodyLeft(read.what));
  if (wrong.empty() && well == 0) {
    findings->push_back({FindingState::kLeftOut, read.what, absl::StrCat(path, ": another path is wrong on every node")});
  } else if (wrong.empty()) {
    const StorageReport& report = e.read.at(first);
    const std::string digest = read.digest(report);
    findings->push_back({FindingState::kOk, read.what,
                         absl::StrCat(path, ": ", read.size(report), ", the same on ", Count(well, "node"),
                                      digest.empty() ? "" : absl::StrCat(" (digest ", digest.substr(0, 12), ")"))});
  }
  AppendSome(std::move(wrong), read.what, findings);
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
  if (!e.request.HasPaths()) {
    return {{FindingState::kLeftOut, "paths",
             "none was named; --data PATH and --folder FOLDER, or --job FILE, look at them on all nodes"}};
  }
  for (const ReadPath* read : {&kData, &kValidation, &kInitial}) JudgeRead(e, *read, &findings);
  if (!e.request.checkpoint_folder.empty()) JudgeFolder(e, &findings);
  return findings;
}

}  // namespace motley::coordinator
