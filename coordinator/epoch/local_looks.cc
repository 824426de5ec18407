#include "coordinator/epoch/local_looks.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/address.h"
#include "common/base/count.h"
#include "coordinator/epoch/local_resume.h"

namespace motley::coordinator {
namespace {

// A disk that is busy reads a few dozen manifests.
constexpr absl::Duration kAnswerPatience = absl::Seconds(30);
// Behind a start of the coordinator: its workers find it within this time, those of machines that start with it, too.
constexpr absl::Duration kComingBack = absl::Seconds(60);
constexpr absl::Duration kTicketLifetime = absl::Hours(1);
// The first protocol whose workers keep files of jobs.
constexpr int kFirstProtocolWithFiles = 3;

std::string SecretOf(const Core& core, const NodeName& node) {
  return core.numbers.FilesSecretOf(node, core.state.nodes.at(node).description.incarnation);
}

Holdings Unite(const Core& core, const LocalLook& look, const JobUid& uid) {
  Holdings holdings;
  std::map<NodeName, HeldCheckpoints> held;
  for (const auto& [node, answer] : look.answers) {
    const auto record = core.state.nodes.find(node);
    if (record == core.state.nodes.end() || !record->second.connected) continue;
    if (!answer) {
      holdings.refusals[node] = "it did not say what it holds of the job";
    } else if (!answer->error.empty()) {
      holdings.refusals[node] = answer->error;
    } else {
      const std::string address = ToText(HostPort{record->second.description.data_address, answer->port});
      holdings.offers[node] = {address, answer->certificate};
      held[node] = answer->held;
    }
  }
  for (const auto& [node, why] : look.refused) holdings.refusals[node] = why;
  holdings.checkpoints = UniteCheckpoints(held, [&](const HeldCheckpoint& checkpoint) {
    return core.numbers.Marked(checkpoint.mark, uid, checkpoint.epoch, checkpoint.step, checkpoint.manifest_digest);
  });
  return holdings;
}

void End(Core& core, const JobId& id) {
  const LocalLook look = std::move(core.local_looks.extract(id).mapped());
  const auto job = core.state.jobs.find(id);
  if (job != core.state.jobs.end()) look.task->wish.held = Unite(core, look, job->second.uid);
  look.task->wish.awaits_published = core.clock.Now() - core.started < kComingBack;
  look.task->prepared = FindLocalResumePoint(look.task->input, look.task->wish);
  look.done();
}

bool AllAnswered(const Core& core, const LocalLook& look) {
  for (const auto& [node, answer] : look.answers) {
    const auto record = core.state.nodes.find(node);
    const bool here = record != core.state.nodes.end() && record->second.connected;
    if (here && !answer) return false;
  }
  return true;
}

}  // namespace

absl::Status BeginLocalLook(Core& core, const std::shared_ptr<LookTask>& task, std::function<void()> done) {
  const JobRecord& job = core.state.jobs.at(task->job);
  LocalLook& look = core.local_looks[task->job];
  look = {absl::StrCat("holdings-", task->job.value(), "-", ++core.local_looks_begun, "-", core.journal.UnixMs()),
          core.clock.Now(),
          {},
          {},
          task,
          std::move(done)};
  for (const auto& [name, node] : core.state.nodes) {
    if (!node.connected) continue;
    if (node.description.protocol < kFirstProtocolWithFiles) {
      look.refused[name] = "its worker is of a version that keeps no files of jobs; upgrade it";
      continue;
    }
    look.answers[name];
    core.Send(name, HoldingsCommand{job.id, job.epoch, job.uid, look.check_id, SecretOf(core, name)});
  }
  return absl::OkStatus();
}

void OnHoldings(Core& core, const NodeName& node, const HoldingsReport& report) {
  const auto look = core.local_looks.find(report.job);
  if (look == core.local_looks.end() || look->second.check_id != report.check_id) return;
  const auto answer = look->second.answers.find(node);
  if (answer == look->second.answers.end()) return;
  answer->second = report;
  if (AllAnswered(core, look->second)) End(core, report.job);
}

void EndLateLooks(Core& core) {
  std::vector<JobId> over;
  for (const auto& [job, look] : core.local_looks) {
    if (AllAnswered(core, look) || core.clock.Now() - look.since > kAnswerPatience) over.push_back(job);
  }
  for (const JobId& job : over) End(core, job);
}

void OnFetch(Core& core, const NodeName& node, const FetchReport& report) {
  JobRun& run = *core.state.run;
  if (run.stage != Stage::kStarting) return;
  run.stage_since = core.clock.Now();
  if (report.done || report.bytes <= 0) return;
  core.SetReason(core.state.jobs.at(run.job),
                 absl::StrFormat("node %s brings its part of checkpoint %s: %.0f %% of %s", node.value(), run.resumed_from,
                                 100.0 * static_cast<double>(report.bytes_here) / static_cast<double>(report.bytes),
                                 Count(report.bytes, "byte")));
}

CheckpointSource SourceFor(const Core& core, const NodeName& reader, const UnitedCheckpoint& checkpoint, const JobUid& uid,
                           const std::map<NodeName, FilesOffer>& offers) {
  CheckpointSource source{checkpoint.head.name, checkpoint.head.manifest_digest, checkpoint.head.mark, {}};
  const int64_t expires = core.journal.UnixMs() + absl::ToInt64Milliseconds(kTicketLifetime);
  const auto shows = offers.find(reader);
  for (const auto& [node, offer] : offers) {
    CheckpointHolder holder{node, node == reader ? "" : offer.address, offer.certificate,
                            {},   checkpoint.manifests.contains(node), {}};
    for (size_t f = 0; f < checkpoint.holders.size(); ++f) {
      if (checkpoint.holders[f].contains(node)) holder.files.push_back(checkpoint.head.files[f].name);
    }
    if (!holder.manifest && holder.files.empty()) continue;
    if (shows != offers.end() && node != reader) {
      holder.ticket = MakeFilesTicket(SecretOf(core, node), shows->second.certificate, uid, expires);
    }
    source.holders.push_back(std::move(holder));
  }
  return source;
}

}  // namespace motley::coordinator
