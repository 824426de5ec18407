#include "coordinator/members/reports.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/logging.h"
#include "coordinator/epoch/contexts.h"
#include "coordinator/epoch/copies.h"
#include "coordinator/epoch/epoch_driver.h"
#include "coordinator/epoch/host_room.h"
#include "coordinator/epoch/inputs.h"
#include "coordinator/epoch/local_looks.h"
#include "coordinator/epoch/memory_limits.h"
#include "coordinator/epoch/memory_probe.h"
#include "coordinator/epoch/prober.h"
#include "coordinator/epoch/rendezvous.h"
#include "coordinator/epoch/second_opinion.h"
#include "coordinator/epoch/setup.h"
#include "coordinator/epoch/setup_reach.h"
#include "coordinator/epoch/steps.h"
#include "coordinator/epoch/tracing.h"
#include "coordinator/members/cards.h"
#include "coordinator/members/examiner.h"
#include "coordinator/members/joining.h"
#include "coordinator/members/leaving.h"
#include "coordinator/members/path_looks.h"
#include "coordinator/members/registry.h"
#include "coordinator/state/sender.h"

namespace motley::coordinator {
namespace {

struct Handler {
  Core& core;
  const NodeName& node;

  template <typename Report>
  bool IsCurrent(const Report& report) const {
    return coordinator::IsCurrent(core.state, report);
  }

  void operator()(const HeartbeatReport& report) {
    NodeRecord& record = core.state.nodes.at(node);
    record.clock.Add(report.unix_ms, core.journal.UnixMs());
    record.doing = report.doing;
    const bool leaves = record.leaves_at.has_value();
    core.Send(node, HeartbeatAnswer{core.Mark(), leaves, leaves && AwaitsFilesOf(core, node)});
  }
  void operator()(const ReachReport& report) {
    if (IsOfExamination(report.check_id)) return OnExaminedReach(core, node, report);
    IsOfSetup(report.check_id) ? OnSetupReach(core, node, report) : OnProbeReach(core, node, report);
  }
  void operator()(const LeavingReport& report) { OnLeaving(core, node, report); }
  void operator()(const CardReport& report) { OnCard(core, node, report); }
  void operator()(const RenewalReport& report) {
    if (report.signing_request.empty()) return NoteStored(core, node, report.stored);
    const absl::StatusOr<IssuedCertificate> issued = RenewNode(core, node, report.signing_request);
    core.Send(node, issued.ok() ? CertificateCommand{issued->certificate, ""}
                                : CertificateCommand{"", std::string(issued.status().message())});
  }
  void operator()(const CheckpointFailedReport& report) {
    if (IsCurrent(report) && HostsRank(*core.state.run, node)) OnCheckpointFailed(core, node, report);
  }
  void operator()(const StorageReport& report) {
    if (IsOfExamination(report.check_id)) return OnExaminedStorage(core, node, report);
    if (OnLookedAtPath(core, node, report) || OnSecondReading(core, node, report)) return;
    if (!report.check_id.empty()) return OnProbeStorage(core, node, report);
    if (IsCurrent(report)) OnStorageReport(core, node, report);
  }
  void operator()(const HoldingsReport& report) { OnHoldings(core, node, report); }
  void operator()(const FetchReport& report) {
    if (!report.input.empty()) return OnInputReport(core, node, report);
    if (!report.copy_id.empty()) return OnCopyReport(core, node, report);
    if (IsCurrent(report) && HostsRank(*core.state.run, node)) OnFetch(core, node, report);
  }
  void operator()(const ProfileReport& report) {
    if (IsOfMemoryProbe(report.check_id)) return OnProbedMemory(core, node, report);
    if (!report.check_id.empty()) return OnProbeProfile(core, node, report);
    if (IsCurrent(report)) OnProfileReport(core, node, report);
  }
  void operator()(const StepReport& report) {
    if (IsCurrent(report)) return OnStep(core, report);
    // A rank that trains on although its epoch is over, say on a worker that was away when the job ended. Told with the number
    // that it named itself: the worker ignores it when it has begun a newer epoch meanwhile. A number that was never given is
    // nobody's: whoever was given a higher one by an older state said so in its hello.
    auto job = core.state.jobs.find(report.job);
    if (job == core.state.jobs.end() || report.epoch > job->second.epoch) return;
    if (!IsFinal(job->second.phase) && report.epoch == job->second.epoch) return;
    core.Send(node, StopCommand{report.job, report.epoch, false, "its generation is over"});
  }
  void operator()(const KvSetReport& report) {
    if (IsCurrent(report) && HostsRank(*core.state.run, node)) OnKvSet(core, report);
  }
  void operator()(const KvGetReport& report) {
    if (IsCurrent(report) && HostsRank(*core.state.run, node)) OnKvGet(core, node, report);
  }
  void operator()(const CheckpointReport& report) {
    if (IsCurrent(report) && HostsRank(*core.state.run, node)) OnCheckpoint(core, node, report);
  }
  // The fence: only the newest epoch of a job that goes on may publish. The worker hears no for everything else.
  void operator()(const PublishReport& report) {
    PublishAnswerCommand answer{report.job, report.epoch,   report.step, report.rank, IsCurrent(report) && !core.ended,
                                "",         report.question};
    if (!answer.allowed) {
      auto job = core.state.jobs.find(report.job);
      answer.reason = job == core.state.jobs.end()
                          ? absl::StrCat("job ", report.job.value(), " is not known")
                          : absl::StrCat("generation ", report.epoch.value(),
                                         " is not the one that runs (newest: ", job->second.epoch.value(), ")");
    } else if (!report.manifest_digest.empty()) {
      const JobUid& uid = core.state.jobs.at(report.job).uid;
      answer.mark = core.numbers.MarkOf(uid, report.epoch, report.step, report.manifest_digest);
    }
    core.Send(node, answer);
  }
  void operator()(const TraceReport& report) {
    if (IsCurrent(report)) OnTrace(core, report);
  }
  void operator()(const LogReport& report) {
    // Only of jobs that are known: the rings are bounded by the number of jobs.
    if (core.state.jobs.contains(report.job)) core.journal.AddLog(report.job, report.source, report.text, report.unix_ms);
  }
  void operator()(const RankReport& report) {
    if (IsCurrent(report)) return OnRank(report);
    if (IsAwaited(report)) EndRank(report.device);
  }

  // The job's numbers went up when its store was put back: of the ranks from before only their end counts.
  bool IsAwaited(const RankReport& report) const {
    const auto& run = core.state.run;
    return run && run->stage == Stage::kIdle && run->job == report.job && run->ranks_from > Epoch() &&
           report.epoch < core.state.jobs.at(run->job).epoch && run->ranks_from <= report.epoch &&
           report.kind != RankEventKind::kReady && report.kind != RankEventKind::kHung;
  }
  void EndRank(const DeviceId& device) {
    for (RankRun& rank : core.state.run->ranks) rank.ended = rank.ended || rank.device == device;
  }

  bool HasFailed(const DeviceId& device) const {
    const std::vector<Failure>& failures = core.state.run->failures;
    return std::any_of(failures.begin(), failures.end(), [&](const Failure& failure) { return failure.device == device; });
  }

  void OnRank(const RankReport& report) {
    JobRun& run = *core.state.run;
    auto rank = std::find_if(run.ranks.begin(), run.ranks.end(), [&](const RankRun& r) { return r.device == report.device; });
    if (rank == run.ranks.end()) return;
    auto fail = [&](FailureKind kind) {
      Failure failure{core.clock.Now(), kind, node, report.device, report.message, report.fault, ""};
      // Ranks read no checkpoint but the one that they resume from.
      if (report.fault == Fault::kDamage && report.damaged_checkpoint == run.resumed_from) {
        failure.damaged_checkpoint = report.damaged_checkpoint;
      }
      run.failures.push_back(std::move(failure));
    };
    // A rank that was told to die is no failure.
    const bool killed = run.stage == Stage::kStopping && !run.saving;
    switch (report.kind) {
      case RankEventKind::kReady:
        if (!rank->ready) run.transports.insert(run.transports.end(), report.transports.begin(), report.transports.end());
        if (!rank->ready && report.context_bytes > 0) OnContext(core, *rank, report.context_bytes);
        rank->ready = true;
        return;
      case RankEventKind::kFinished:
        rank->ended = true;
        return;
      case RankEventKind::kHung:  // it still lives; it is gone when its worker says so
        if (!killed) fail(FailureKind::kHung);
        return;
      case RankEventKind::kDied:
        // The exit that follows another word (a stall, a failure) is no news.
        if (!rank->ended && !killed && !HasFailed(report.device)) fail(FailureKind::kDied);
        break;
      case RankEventKind::kFailed:
        if (report.fault == Fault::kMemory) OnOutOfMemory(core, *rank, report);
        if (report.host_offer_bytes) {
          if (!killed) OnHostRoom(core, report, *report.host_offer_bytes);
          break;
        }
        if (!killed) fail(report.fault == Fault::kPeer ? FailureKind::kPeerLost : FailureKind::kFailed);
        break;
      case RankEventKind::kPeerLost:
        if (!killed) fail(FailureKind::kPeerLost);
        break;
      case RankEventKind::kNonFinite:
        if (!killed) fail(FailureKind::kNonFinite);
        break;
    }
    rank->ended = true;
  }
};

// Dropped and counted. Said once for each node and kind: whoever sends such reports would otherwise fill the log.
void DropForeign(Core& core, const NodeName& node, const WorkerReport& report, const std::string& why) {
  core.CountForeign(node, ReportKind(report), why);
  if (const auto* question = std::get_if<PublishReport>(&report)) {
    core.Send(node, PublishAnswerCommand{question->job, question->epoch, question->step, question->rank, false, why,
                                         question->question});
  }
}

}  // namespace

void HandleReport(Core& core, const NodeName& node, const WorkerReport& report) {
  auto it = core.state.nodes.find(node);
  if (it == core.state.nodes.end() || !it->second.connected) return;
  it->second.last_seen = core.clock.Now();
  it->second.last_seen_unix_ms = core.journal.UnixMs();
  const Standing standing = StandingOf(core.state, node, report);
  switch (standing.kind) {
    case Standing::kOwn:
      std::visit(Handler{core, node}, report);
      break;
    case Standing::kForeign:
      return DropForeign(core, node, report, standing.why);
    case Standing::kGap:
      Disconnect(core, node, absl::StrCat(standing.why, ": reports between them were lost"));
      break;
  }
  const bool quiet = std::holds_alternative<HeartbeatReport>(report) || std::holds_alternative<LogReport>(report);
  if (!quiet) Drive(core);
}

}  // namespace motley::coordinator
