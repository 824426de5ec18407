#include "coordinator/rpc/list_files.h"

#include <algorithm>

#include "common/job/job_input.h"
#include "common/wire/files.h"
#include "coordinator/epoch/disk_looks.h"
#include "coordinator/epoch/holdings_round.h"
#include "coordinator/state/initial_weights.h"

namespace motley::coordinator {
namespace {

// Unfinished jobs that read the input.
std::vector<JobId> ReadersOf(const ClusterState& state, const std::string& input) {
  std::vector<JobId> readers;
  for (const auto& [id, job] : state.jobs) {
    if (IsFinal(job.phase)) continue;
    const std::vector<JobInput> inputs = InputsNow(job);
    const bool reads = std::any_of(inputs.begin(), inputs.end(), [&](const JobInput& each) { return each.id == input; });
    if (reads) readers.push_back(id);
  }
  return readers;
}

// Whose it is, as far as a job of that uid is known.
const JobRecord* OwnerOf(const ClusterState& state, const ListedFiles& listed) {
  const auto job = state.jobs.find(listed.job);
  return job != state.jobs.end() && job->second.uid == listed.uid ? &job->second : nullptr;
}

void AddListed(const ClusterState& state, const ListedFiles& listed, v1::NodeFiles& node) {
  v1::FilesOnNode* const row = node.add_files();
  *row->mutable_listed() = wire::ToProto(listed);
  if (listed.job.empty()) {
    for (const JobId& reader : ReadersOf(state, listed.input)) row->add_jobs(reader.value());
  } else if (const JobRecord* const owner = OwnerOf(state, listed)) {
    row->add_jobs(owner->id.value());
    row->set_safe(owner->safe_checkpoint == listed.name);
  }
}

// Of one job: what it left, and what it reads.
bool IsAbout(const ClusterState& state, const ListedFiles& listed, const JobId& job) {
  if (job.empty() || listed.job == job) return true;
  const auto found = state.jobs.find(job);
  if (found == state.jobs.end() || listed.input.empty()) return false;
  const std::vector<JobInput> inputs = InputsOf(found->second.config);
  return std::any_of(inputs.begin(), inputs.end(), [&](const JobInput& each) { return each.id == listed.input; });
}

v1::FileListing ViewOf(const Core& core, const DiskLook& look, const JobId& job) {
  v1::FileListing view;
  for (const auto& [name, answer] : look.round.answers) {
    v1::NodeFiles* const node = view.add_nodes();
    node->set_node(name.value());
    if (!answer || !answer->error.empty()) node->set_error(answer ? answer->error : "it did not say in time what lies there");
    if (!answer) continue;
    node->set_free_bytes(answer->free_bytes);
    node->set_unlisted(answer->unlisted);
    for (const ListedFiles& listed : answer->listed) {
      if (IsAbout(core.state, listed, job)) AddListed(core.state, listed, *node);
    }
  }
  for (const auto& [name, unwanted] : core.unwanted) {
    for (const UnwantedFiles& files : unwanted.files) {
      if (!job.empty() && files.job != job) continue;
      v1::UnwantedOnNode* const row = view.add_unwanted();
      row->set_node(name.value());
      row->set_job_id(files.job.value());
    }
  }
  return view;
}

}  // namespace

absl::StatusOr<Pull> ListFilesSource::Next(Core& core, v1::ListFilesUpdate* out) {
  if (done_) return Pull::kEnd;
  if (ticket_ == nullptr) {
    ticket_ = BeginDiskLook(core, /*list=*/true);
    out->set_doing("asking the nodes");
    return Pull::kMessage;
  }
  const DiskLook& look = *FindDiskLook(core, ticket_);
  if (!IsOver(core, look.round)) return Pull::kWait;
  *out->mutable_result() = ViewOf(core, look, job_);
  done_ = true;
  ticket_.reset();
  return Pull::kMessage;
}

}  // namespace motley::coordinator
