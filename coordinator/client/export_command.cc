#include "coordinator/client/export_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clean_text.h"
#include "common/base/some_names.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "coordinator/client/card_facts.h"
#include "coordinator/client/json.h"
#include "coordinator/client/read_while_saved.h"
#include "coordinator/client/watch.h"

namespace motley::client {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFolders = 4;

struct ExportFlags {
  std::string id, checkpoint, out;
};

// What the card of a checkpoint's model says beyond the checkpoint.
using Facts = std::function<CardFacts(const CheckpointManifest&)>;

// That a checkpoint's bytes were altered shows only while they are read: the one before is taken then.
absl::StatusOr<FoundCheckpoint> ExportNewest(const std::string& root, const std::string& out_folder, const Facts& facts,
                                             const CheckpointFilter& wanted = {}) {
  std::map<std::string, absl::Status> altered;
  const CheckpointFilter intact = [&](const CheckpointManifest& manifest, const std::string& folder) {
    const auto found = altered.find(folder);
    if (found != altered.end()) return found->second;
    return wanted ? wanted(manifest, folder) : absl::OkStatus();
  };
  while (true) {
    MOTLEY_ASSIGN_OR_RETURN(FoundCheckpoint found, FindNewestCheckpoint(root, {}, intact));
    const absl::Status exported = ExportHuggingFace(found.folder, out_folder, facts(found.manifest));
    if (exported.ok()) return found;
    std::error_code error;
    const bool gone = !fs::exists(found.folder, error);  // pruned meanwhile, and not altered
    if (!absl::IsDataLoss(exported) || gone) return exported;
    altered[found.folder] = exported;
  }
}

// The folder of one checkpoint, or of several.
absl::StatusOr<FoundCheckpoint> ExportAt(const std::string& folder, const std::string& out_folder) {
  MOTLEY_ASSIGN_OR_RETURN(FoundCheckpoint found, FindCheckpointAt(folder, {}));
  const CardFacts facts = CardFactsOf(absl::Now());
  if (found.folder != folder) return ExportNewest(folder, out_folder, [&](const CheckpointManifest&) { return facts; });
  MOTLEY_RETURN_IF_ERROR(ExportHuggingFace(folder, out_folder, facts));
  return found;
}

// Folders of jobs that lie in a folder which itself holds no checkpoint: checkpoint.folder was given without the job's id.
std::string HintOfJobFolders(const std::string& folder) {
  std::vector<std::string> jobs;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const auto inside = ListCheckpointFolders(entry->path().string());
    if (inside.ok() && !inside->empty()) jobs.push_back(entry->path().string());
  }
  std::sort(jobs.begin(), jobs.end());
  return jobs.empty() ? "" : absl::StrCat("; give the folder of one job: ", SomeNames(jobs, kMostFolders));
}

Exit Report(Context& context, const std::string& id, const FoundCheckpoint& found, const std::string& out_folder) {
  for (const std::string& reason : found.skipped) context.err << "motley: left out: " << CleanLine(reason) << std::endl;
  if (context.json) {
    PrintDocument(context.out,
                  Json{{"job_id", id}, {"step", found.manifest.step}, {"checkpoint", found.folder}, {"out", out_folder}});
  } else {
    context.out << "step " << found.manifest.step << " of job " << CleanLine(id) << " is in " << out_folder
                << (found.manifest.base.empty() ? " (config.json, model.safetensors, and a tokenizer: a token is a byte)\n"
                                                : " (weights, and the files that came with the model or the tokens)\n");
  }
  return {};
}

// One that has ended saves none any more: its reason says why, as of a job that was refused for others' checkpoints in its
// folder.
absl::Status WhyNone(const v1::Job& job) {
  if (job.state() != v1::JOB_STATE_FAILED) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job.id(), " has no checkpoint yet; set checkpoint.interval, or stop the job, which saves one"));
  }
  return absl::FailedPreconditionError(absl::StrCat("job ", job.id(), " has no checkpoint, it is FAILED: ", job.reason(),
                                                    "; motley export --checkpoint FOLDER takes one of any job"));
}

Exit ExportJob(Context& context, const std::string& id, const std::string& out_folder) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  auto job = GetJob(*connection, id);
  if (!job.ok()) return FromServer(job.status());
  if (job->newest_checkpoint().empty()) return FromServer(WhyNone(*job));
  if (job->spec().checkpoint().storage() == "local") {
    return FromServer(absl::UnimplementedError(absl::StrCat(
        "checkpoint ", job->newest_checkpoint(), " of job ", id, " lies on its nodes' disks, in jobs/", id, ".", job->uid(),
        "/checkpoints of their [files] local: motley export does not read it from there yet; copy the folders of all nodes into "
        "one, and give that to motley export --checkpoint FOLDER")));
  }
  const std::string root = fs::path(job->newest_checkpoint()).parent_path().string();
  // Another cluster's job of this id may save there, too. What was adopted is the newest one until the job has saved.
  const CheckpointFilter own = OnlyOf({JobId(id), JobUid(job->uid()), job->owns_unnamed_checkpoints()});
  const CheckpointFilter of_job = [&](const CheckpointManifest& manifest, const std::string& folder) {
    // A coordinator from before uids tells none.
    return job->uid().empty() || folder == job->newest_checkpoint() ? absl::OkStatus() : own(manifest, folder);
  };
  const absl::Time now = absl::Now();
  const CardFacts known = CardFactsOf(*connection, *job, now);
  const Facts facts = [&](const CheckpointManifest& manifest) {
    const bool own_facts = job->uid().empty() || manifest.job_uid.empty() || manifest.job_uid.value() == job->uid();
    return own_facts ? known : CardFactsOf(now);
  };
  const auto found = ReadWhileSaved(root, [&] { return ExportNewest(root, out_folder, facts, of_job); });
  if (absl::IsNotFound(found.status())) {
    return FromFiles(absl::NotFoundError(absl::StrCat(std::string(found.status().message()),
                                                      "; run this where the job's checkpoint folder ", root, " is mounted")));
  }
  if (!found.ok()) return FromFiles(found.status());
  return Report(context, id, *found, out_folder);
}

Exit ExportFolder(Context& context, const std::string& folder, const std::string& out_folder) {
  const auto found = ReadWhileSaved(folder, [&] { return ExportAt(folder, out_folder); });
  if (absl::IsNotFound(found.status())) {
    return FromFiles(absl::NotFoundError(absl::StrCat(std::string(found.status().message()), HintOfJobFolders(folder))));
  }
  if (!found.ok()) return FromFiles(found.status());
  return Report(context, found->manifest.job, *found, out_folder);
}

Exit Export(Context& context, const ExportFlags& flags) {
  if (flags.id.empty() == flags.checkpoint.empty()) {
    return {kUsage, "give JOB, or --checkpoint FOLDER to export without a coordinator"};
  }
  if (flags.checkpoint.empty()) return ExportJob(context, flags.id, flags.out.empty() ? "./" + flags.id : flags.out);
  if (flags.out.empty()) return {kUsage, "--checkpoint needs --out, the folder to write"};
  return ExportFolder(context, flags.checkpoint, flags.out);
}

}  // namespace

Action AddExport(CLI::App& app) {
  auto flags = std::make_shared<ExportFlags>();
  app.add_option("JOB", flags->id, "the job's id");
  app.add_option("--checkpoint", flags->checkpoint,
                 "instead of a job: the folder of one checkpoint, or one of several, whose newest is taken; asks no coordinator")
      ->type_name("FOLDER");
  app.add_option("--out", flags->out, "the folder to write, by default ./JOB; it must hold neither a model nor a README.md yet")
      ->type_name("FOLDER");
  app.footer("Example: motley export --checkpoint checkpoints/demo --out demo");
  return [flags](Context& context) { return Export(context, *flags); };
}

}  // namespace motley::client
