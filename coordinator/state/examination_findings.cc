#include "coordinator/state/examination_findings.h"

#include <utility>

namespace motley::coordinator {

std::vector<Finding> Judge(absl::Duration now, const ClusterState& state, const Examination& e) {
  std::vector<Finding> all = JudgeNodes(now, state);
  for (auto part : {JudgeClocks(state), JudgePorts(state, e), JudgeLinks(e), JudgePaths(e)}) {
    for (Finding& finding : part) all.push_back(std::move(finding));
  }
  return all;
}

}  // namespace motley::coordinator
