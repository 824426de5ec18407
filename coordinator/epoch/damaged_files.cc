#include "coordinator/epoch/damaged_files.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace motley::coordinator {

void NoteDamagedFiles(Core& core, const NodeName& node, const FetchReport& report, const std::string& checkpoint) {
  const std::string under = absl::StrCat(report.epoch.value(), "/", report.copy_id);
  for (const DamagedFile& damaged : report.damaged_files) {
    CopyKeeper& keeper = core.copies[report.job];
    const NodeName& of = damaged.node.empty() ? node : damaged.node;
    if (!keeper.complaints.emplace(node, under, of, damaged.file).second) continue;
    keeper.damaged_files.emplace(of, checkpoint, damaged.file);
    if (keeper.takers.empty()) keeper.look_at = core.clock.Now();
  }
}

void NoteDamagedInitial(JobRun& run, const NodeName& node, const FetchReport& report) {
  for (const DamagedFile& damaged : report.damaged_files) {
    run.damaged_of_initial.emplace(damaged.node.empty() ? node : damaged.node, run.resumed_from, damaged.file);
  }
}

bool HasDamagedFiles(const Core& core, const JobId& job, const std::string& checkpoint) {
  const auto keeper = core.copies.find(job);
  return keeper != core.copies.end() &&
         std::any_of(keeper->second.damaged_files.begin(), keeper->second.damaged_files.end(), [&](const auto& damaged) {
           const auto node = core.state.nodes.find(std::get<0>(damaged));
           const bool here = node != core.state.nodes.end() && node->second.connected;
           return here && std::get<1>(damaged) == checkpoint;
         });
}

void LeaveOutDamaged(const Core& core, const JobId& job, Holdings& held) {
  const auto keeper = core.copies.find(job);
  if (keeper != core.copies.end()) LeaveOutDamaged(keeper->second.damaged_files, held);
}

void LeaveOutDamaged(const DamagedFiles& damaged, Holdings& held) {
  for (UnitedCheckpoint& checkpoint : held.checkpoints) {
    for (size_t f = 0; f < checkpoint.holders.size(); ++f) {
      std::erase_if(checkpoint.holders[f], [&](const NodeName& node) {
        return damaged.contains({node, checkpoint.head.name, checkpoint.head.files[f].name});
      });
    }
  }
}

}  // namespace motley::coordinator
