#include "coordinator/client/export_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clean_text.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/some_names.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/export_folder.h"
#include "coordinator/client/card_facts.h"
#include "coordinator/client/carried_checkpoint.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/read_while_saved.h"
#include "coordinator/client/waiting.h"
#include "coordinator/client/watch.h"

namespace motley::client {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFolders = 4;

// Within the folder that is written, what comes from the nodes' disks for it, until it is written.
constexpr char kCarriedFolder[] = "/.carried";

struct ExportFlags {
  std::string id, checkpoint, out;
  bool raw = false;
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

Exit Report(Context& context, const std::string& id, const FoundCheckpoint& found, const std::string& out_folder,
            bool raw = false) {
  for (const std::string& reason : found.skipped) context.err << "motley: left out: " << CleanLine(reason) << std::endl;
  if (context.json) {
    PrintDocument(context.out,
                  Json{{"job_id", id}, {"step", found.manifest.step}, {"checkpoint", found.folder}, {"out", out_folder}});
  } else if (raw) {
    context.out << "step " << found.manifest.step << " of job " << CleanLine(id) << " is in " << found.folder
                << ", as its ranks wrote it; motley export --checkpoint " << out_folder << " makes a model of it\n";
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

// Of a checkpoint on the nodes' disks: how far it is here.
std::string HowFar(const std::string& id, const CarriedBytes& bytes, absl::Time begun) {
  return absl::StrCat("job ", id, "'s checkpoint comes from node ", bytes.node, ", ",
                      HowFarOf(bytes.here, bytes.all, absl::Now() - begun));
}

absl::StatusOr<FoundCheckpoint> Carry(Context& context, Connection& connection, const v1::Job& job, const std::string& into,
                                      CarriedBlocks which) {
  Waiting waiting(context);
  const absl::Time begun = absl::Now();
  std::string said;
  FileCarrier carrier(connection, {.say = [&](const std::string& text) {
                        if (std::exchange(said, text) != text) context.Say(text);
                      }});
  return CarryCheckpoint(carrier, JobId(job.id()), JobUid(job.uid()), into, which,
                         [&](const CarriedBytes& bytes) { waiting.Show(HowFar(job.id(), bytes, begun)); });
}

// A failure of this machine's disk is none of the coordinator's.
Exit FromCarry(const absl::Status& status) { return FaultOf(status) == Fault::kStorage ? FromFiles(status) : FromServer(status); }

// The names in `from` go to `to`.
absl::Status MoveInto(const std::string& from, const std::string& to) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(from, error)) {
    const std::string target = absl::StrCat(to, "/", entry.path().filename().string());
    if (FileExists(target)) return absl::AlreadyExistsError(absl::StrCat(target, " exists; choose another folder or remove it"));
    fs::rename(entry.path(), target, error);
    if (error) return FileError(error.value(), "rename", entry.path().string());
  }
  return error ? FileError(error.value(), "list", from) : SyncFolder(to);
}

// From the nodes' disks, by way of a folder within the one that is written: an export that was cut off goes on.
Exit ExportFromNodes(Context& context, Connection& connection, const v1::Job& job, const ExportFlags& flags) {
  if (!flags.raw) {
    if (const absl::Status free = CheckNoModel(flags.out); !free.ok()) return FromFiles(free);
  }
  const std::string carried = flags.out + kCarriedFolder;
  if (const absl::Status made = MakeFolders(carried); !made.ok()) return FromFiles(made);
  const auto which = flags.raw ? CarriedBlocks::kAll : CarriedBlocks::kParameters;
  absl::StatusOr<FoundCheckpoint> found = Carry(context, connection, job, carried, which);
  if (!found.ok()) return FromCarry(found.status());
  const CardFacts facts = CardFactsOf(connection, job, absl::Now());
  absl::Status written = flags.raw ? MoveInto(carried, flags.out)
                                   : ExportHuggingFace(found->folder, flags.out, facts, kMostShardBytes, VerifiedWhen::kAsRead);
  if (written.ok()) written = RemoveTree(carried);
  if (!written.ok()) return FromFiles(written);
  const std::string name = fs::path(found->folder).filename().string();
  found->folder = flags.raw ? absl::StrCat(flags.out, "/", name) : name;
  return Report(context, job.id(), *found, flags.out, flags.raw);
}

Exit ExportJob(Context& context, const ExportFlags& flags) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  auto job = GetJob(*connection, flags.id);
  if (!job.ok()) return FromServer(job.status());
  if (job->newest_checkpoint().empty()) return FromServer(WhyNone(*job));
  if (job->spec().checkpoint().storage() == "local") return ExportFromNodes(context, *connection, *job, flags);
  if (flags.raw) {
    return {kUsage, absl::StrCat("--raw is of checkpoints on nodes' disks; those of job ", flags.id,
                                 " are folders: ", job->newest_checkpoint())};
  }
  const std::string root = fs::path(job->newest_checkpoint()).parent_path().string();
  // Another cluster's job of this id may save there, too. What was adopted is the newest one until the job has saved.
  const CheckpointFilter own = OnlyOf({JobId(flags.id), JobUid(job->uid()), job->owns_unnamed_checkpoints()});
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
  const auto found = ReadWhileSaved(root, [&] { return ExportNewest(root, flags.out, facts, of_job); });
  if (absl::IsNotFound(found.status())) {
    return FromFiles(absl::NotFoundError(absl::StrCat(std::string(found.status().message()),
                                                      "; run this where the job's checkpoint folder ", root, " is mounted")));
  }
  if (!found.ok()) return FromFiles(found.status());
  return Report(context, flags.id, *found, flags.out);
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
  if (flags.checkpoint.empty()) {
    ExportFlags of_job = flags;
    if (of_job.out.empty()) of_job.out = "./" + flags.id;
    return ExportJob(context, of_job);
  }
  if (flags.raw) return {kUsage, "--raw is of a job; what --checkpoint names is here already"};
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
  app.add_flag(
      "--raw", flags->raw,
      "the whole checkpoint as its ranks wrote it, with the optimizer's state: of a job that keeps them on its nodes' disks");
  app.footer("Example: motley export --checkpoint checkpoints/demo --out demo");
  return [flags](Context& context) { return Export(context, *flags); };
}

}  // namespace motley::client
