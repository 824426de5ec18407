#include "coordinator/epoch/storage_blame.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "coordinator/epoch/leave_out.h"

namespace motley::coordinator {
namespace {

constexpr int kMostTimes = 3;       // in a row
constexpr size_t kFewestNodes = 3;  // of two nobody knows which one is wrong
constexpr int64_t kRestoring = -1;  // instead of the step of a save

size_t NumNodes(const JobRun& run) {
  std::set<NodeName> nodes;
  for (const RankRun& rank : run.ranks) nodes.insert(NodeOf(rank.device));
  return nodes.size();
}

bool HasRank(const JobRun& run, const DeviceId& device) {
  return std::any_of(run.ranks.begin(), run.ranks.end(), [&](const RankRun& rank) { return rank.device == device; });
}

// True: its third time in a row.
bool CountBlame(StorageBlame& blame, const NodeName& node, Epoch epoch, int64_t step) {
  if (blame.node != node) blame = {node};
  if (blame.times > 0 && blame.epoch == epoch && blame.step == step) return false;
  blame.epoch = epoch;
  blame.step = step;
  return ++blame.times == kMostTimes;
}

void GoOnWithout(Core& core, const NodeName& node) {
  const CheckpointSection& checkpoint = core.state.jobs.at(core.state.run->job).config.checkpoint;
  const std::string remedy = IsOnNodesDisks(checkpoint)
                                 ? "see to the disk of its [files] local"
                                 : absl::StrCat("see that ", checkpoint.folder, " is mounted there as on the other nodes");
  (void)LeaveOut(core, node,
                 absl::StrCat("it is the third time in a row that the job's checkpoints could not be written or read because of "
                              "its file system; ",
                              remedy));
  core.state.run->storage_blame = {};
}

}  // namespace

void BlameForSave(Core& core, const CheckpointFailedReport& report) {
  JobRun& run = *core.state.run;
  if (!HasRank(run, report.blamed) || NumNodes(run) < kFewestNodes) {
    run.storage_blame = {};
    return;
  }
  const NodeName node = NodeOf(report.blamed);
  if (!CountBlame(run.storage_blame, node, report.epoch, report.step)) return;
  GoOnWithout(core, node);
  // One that is being stopped tries to the end of its patience.
  if (run.stage != Stage::kStarting && run.stage != Stage::kRunning) return;
  run.failures.push_back({core.clock.Now(), FailureKind::kFailed, node, report.blamed, report.message, Fault::kStorage, ""});
}

void BlameForRestore(Core& core, const Failure& failure) {
  JobRun& run = *core.state.run;
  const bool unreadable = failure.kind == FailureKind::kFailed && failure.fault == Fault::kStorage;
  if (!unreadable || run.epoch_steps > 0 || run.resumed_from.empty()) return;
  const bool alone = std::all_of(run.failures.begin(), run.failures.end(), [&](const Failure& other) {
    return other.fault != Fault::kStorage || NodeOf(other.device) == NodeOf(failure.device);
  });
  if (!alone || NumNodes(run) < kFewestNodes) {
    run.storage_blame = {};
    return;
  }
  const NodeName node = NodeOf(failure.device);
  if (CountBlame(run.storage_blame, node, core.state.jobs.at(run.job).epoch, kRestoring)) GoOnWithout(core, node);
}

}  // namespace motley::coordinator
