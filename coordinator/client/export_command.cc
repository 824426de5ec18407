#include "coordinator/client/export_command.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/checkpoint/checkpoint.h"
#include "coordinator/client/json.h"
#include "coordinator/client/watch.h"

namespace motley::client {
namespace {

Exit Export(Context& context, const std::string& id, const std::string& out_folder) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  auto job = GetJob(*connection, id);
  if (!job.ok()) return FromServer(job.status());
  if (job->newest_checkpoint().empty()) {
    return FromServer(absl::FailedPreconditionError(
        absl::StrCat("job ", id, " has no checkpoint yet; set checkpoint.interval, or stop the job, which saves one")));
  }
  const std::string root = std::filesystem::path(job->newest_checkpoint()).parent_path().string();
  auto found = FindNewestCheckpoint(root, {});
  if (absl::IsNotFound(found.status())) {
    return FromFiles(absl::NotFoundError(absl::StrCat(std::string(found.status().message()),
                                                      "; run this where the job's checkpoint folder ", root, " is mounted")));
  }
  if (!found.ok()) return FromFiles(found.status());
  for (const std::string& reason : found->skipped) context.err << "motley: left out: " << CleanLine(reason) << std::endl;
  if (absl::Status status = ExportHuggingFace(found->folder, out_folder); !status.ok()) return FromFiles(status);
  if (context.json) {
    PrintDocument(context.out,
                  Json{{"job_id", id}, {"step", found->manifest.step}, {"checkpoint", found->folder}, {"out", out_folder}});
  } else {
    context.out << "step " << found->manifest.step << " of job " << id << " is in " << out_folder
                << " (config.json, model.safetensors; no tokenizer: a token is a byte)\n";
  }
  return {};
}

}  // namespace

Action AddExport(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  auto out_folder = std::make_shared<std::string>();
  app.add_option("JOB", *id, "the job's id")->required();
  app.add_option("--out", *out_folder, "the folder to write, by default ./JOB; it must not hold a model yet")
      ->type_name("FOLDER");
  return [id, out_folder](Context& context) { return Export(context, *id, out_folder->empty() ? "./" + *id : *out_folder); };
}

}  // namespace motley::client
