// JudgeDisks.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "coordinator/state/examination_findings.h"

namespace motley::coordinator {
namespace {

constexpr char kWhat[] = "disks";

std::string Complaint(const std::optional<HoldingsReport>& answer) {
  if (!answer) return "it does not say what lies on its disk";
  if (!answer->error.empty()) return CleanLine(answer->error);
  // What a tenth of the file system is kept free for.
  return answer->free_bytes == 1 ? "less than a tenth of the file system of [files] local is free: no copies and no data come"
                                 : "";
}

std::string RoomText(int64_t bytes) {
  return bytes == 0 ? "not known" : absl::StrFormat("%.1f GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace

std::vector<Finding> JudgeDisks(const ClusterState& state, const std::map<NodeName, std::optional<HoldingsReport>>& answers) {
  const bool in_use = std::any_of(state.jobs.begin(), state.jobs.end(), [](const auto& job) {
    return IsOnNodesDisks(job.second.config.checkpoint) && !IsFinal(job.second.phase);
  });
  std::vector<Finding> complaints;
  std::vector<std::string> free;
  for (const auto& [node, answer] : answers) {
    const std::string complaint = Complaint(answer);
    if (complaint.empty()) {
      free.push_back(absl::StrCat(RoomText(answer->free_bytes), " on ", node.value()));
    } else {
      complaints.push_back({in_use ? FindingState::kWrong : FindingState::kWarning, kWhat,
                            absl::StrCat("node ", node.value(), ": ", complaint,
                                         in_use ? "" : "; jobs that name no checkpoint.folder would wait for it")});
    }
  }
  std::vector<Finding> findings;
  AppendSome(std::move(complaints), kWhat, &findings);
  if (free.empty()) return findings;
  const size_t shown = std::min(free.size(), kMostFindings);
  const std::string more = free.size() > shown ? absl::StrCat(" and ", free.size() - shown, " more") : "";
  free.resize(shown);
  findings.push_back(
      {FindingState::kOk, kWhat,
       absl::StrCat("room for checkpoints and data of jobs without a common folder: ", absl::StrJoin(free, ", "), more)});
  return findings;
}

}  // namespace motley::coordinator
