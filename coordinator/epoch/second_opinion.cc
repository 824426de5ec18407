#include "coordinator/epoch/second_opinion.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/epoch/damaged_files.h"
#include "coordinator/epoch/leave_out.h"

namespace motley::coordinator {

namespace {

bool IsDamagedInitial(const JobRun& run, const std::string& checkpoint) {
  return std::any_of(run.damaged_of_initial.begin(), run.damaged_of_initial.end(),
                     [&](const auto& damaged) { return std::get<1>(damaged) == checkpoint; });
}

// On the nodes' disks no other node reads the same file: the next start compares what is there with the manifest, and brings what
// is damaged from where there is a copy. What it finds is told by the nodes (epoch/copies); where it finds nothing, the node of
// who complains again reads badly.
void SuspectLocal(Core& core, const Failure& failure) {
  JobRun& run = *core.state.run;
  const std::string said = absl::StrCat("checkpoint ", failure.damaged_checkpoint, ", in which the rank on ",
                                        failure.device.value(), " found damage (", failure.message, "), ");
  const bool first = run.read_twice.insert(failure.damaged_checkpoint).second;
  if (first || HasDamagedFiles(core, run.job, failure.damaged_checkpoint) || IsDamagedInitial(run, failure.damaged_checkpoint)) {
    core.journal.AddLog(run.job, "coordinator",
                        absl::StrCat(said, "is compared with its manifest on each node, and what is damaged comes from copies"),
                        core.journal.UnixMs());
    return;
  }
  LeaveOut(core, NodeOf(failure.device), absl::StrCat(said, "verifies on its disk: that node reads badly"));
}

}  // namespace

void Suspect(Core& core, const Failure& failure) {
  JobRun& run = *core.state.run;
  if (IsOnNodesDisks(core.state.jobs.at(run.job).config.checkpoint)) return SuspectLocal(core, failure);
  Suspicion& suspicion = run.suspicion.emplace();
  suspicion.checkpoint = failure.damaged_checkpoint;
  suspicion.accuser = failure.device;
  suspicion.complaint = failure.message;
  suspicion.bytes = run.resume_bytes;
}

void SuspectUnread(Core& core) {
  JobRun& run = *core.state.run;
  const bool local = IsOnNodesDisks(core.state.jobs.at(run.job).config.checkpoint);
  if (local && run.stage == Stage::kStarting && !run.resumed_from.empty()) run.read_twice.insert(run.resumed_from);
}

void AskReader(Core& core, const NodeName& node, const std::string& reason) {
  JobRun& run = *core.state.run;
  JobRecord& job = core.state.jobs.at(run.job);
  Suspicion& suspicion = *run.suspicion;
  // Who was asked before and did not say need not read on.
  if (!suspicion.reader.empty()) core.Send(suspicion.reader, StopCommand{job.id, job.epoch, false, "another node is asked"});
  suspicion.reader = node;
  suspicion.tried.insert(node);
  suspicion.incarnation = core.state.nodes.at(node).description.incarnation;
  suspicion.asked = core.clock.Now();
  suspicion.answer.reset();
  suspicion.check_id = absl::StrCat("second-", job.id.value(), "-", suspicion.tried.size(), "-", core.journal.UnixMs());
  StorageCheckCommand command{job.id, job.epoch, "", "", "", false, suspicion.check_id};
  command.verify_checkpoint = suspicion.checkpoint;
  core.Send(node, std::move(command));
  core.SetReason(job, reason);
}

bool OnSecondReading(Core& core, const NodeName& node, const StorageReport& report) {
  if (!core.state.run || !core.state.run->suspicion) return false;
  Suspicion& suspicion = *core.state.run->suspicion;
  if (suspicion.reader != node || suspicion.check_id != report.check_id) return false;
  suspicion.answer = report;
  return true;
}

void Judge(Core& core, Verdict verdict, const std::string& reason) {
  JobRun& run = *core.state.run;
  const Suspicion suspicion = *std::exchange(run.suspicion, std::nullopt);
  if (verdict == Verdict::kWhole) return LeaveOut(core, NodeOf(suspicion.accuser), reason);
  if (verdict == Verdict::kReadAgain) {
    if (suspicion.tried.contains(NodeOf(suspicion.accuser))) run.read_twice.insert(suspicion.checkpoint);
    core.journal.AddLog(run.job, "coordinator", absl::StrCat(reason, "; it is tried again"), core.journal.UnixMs());
    return;
  }
  run.damaged.insert(suspicion.checkpoint);
  EventRecord event;
  event.job = run.job;
  event.kind = kind::kCheckpointSkipped;
  event.node = NodeOf(suspicion.accuser);
  event.device = suspicion.accuser;
  event.epoch = core.state.jobs.at(run.job).epoch;
  event.message = absl::StrCat(reason, "; the checkpoint before it is used instead");
  core.Emit(std::move(event));
}

}  // namespace motley::coordinator
