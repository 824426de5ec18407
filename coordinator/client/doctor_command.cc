#include "coordinator/client/doctor_command.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/duration_text.h"
#include "common/base/version.h"
#include "common/job/job_input.h"
#include "coordinator/client/doctor_report.h"
#include "coordinator/client/json.h"
#include "coordinator/client/load_job.h"
#include "coordinator/client/result_stream.h"

namespace motley::client {
namespace {

// Beyond what the coordinator's limits of stages add up to; with paths, and behind another examination.
constexpr absl::Duration kLongest = absl::Minutes(5);

struct DoctorFlags {
  std::string data, folder, job;
  std::vector<std::string> overrides;
  bool rates = false;
};

v1::Finding Row(v1::Finding::State state, const std::string& what, const std::string& text) {
  v1::Finding finding;
  finding.set_state(state);
  finding.set_what(what);
  finding.set_text(text);
  return finding;
}

v1::Finding CoordinatorRow(const std::string& address, const v1::ClusterCheck& check) {
  const std::string is = absl::StrCat(address, ": version ", check.version(), ", protocol ", check.protocol());
  if (check.version() == kVersion && check.protocol() == kProtocol) return Row(v1::Finding::STATE_OK, "coordinator", is);
  // Another version is understood; a cluster is upgraded machine by machine.
  return Row(
      check.protocol() == kProtocol ? v1::Finding::STATE_WARNING : v1::Finding::STATE_WRONG, "coordinator",
      absl::StrCat(is, "; this command has version ", kVersion, ", protocol ", kProtocol, ": install the same version on both"));
}

Exit Report(Context& context, const v1::ClusterCheck& check, int code_of_wrong) {
  if (context.json) {
    PrintDocument(context.out, CheckJson(check));
  } else {
    PrintCheck(context.out, context.screen, check);
  }
  return {Worst(check) == v1::Finding::STATE_WRONG ? code_of_wrong : 0, ""};
}

// Nothing came, or not all: that is a finding as well.
Exit ReportFailure(Context& context, const absl::Status& status) {
  v1::ClusterCheck check;
  *check.add_findings() = Row(v1::Finding::STATE_WRONG, "coordinator", std::string(status.message()));
  // An older coordinator has no such request.
  return Report(context, check, absl::IsUnimplemented(status) ? EX_DATAERR : FromServer(status).code);
}

absl::StatusOr<v1::ClusterCheck> Ask(Context& context, const v1::CheckClusterRequest& request) {
  absl::StatusOr<std::optional<v1::ClusterCheck>> result =
      AwaitResult(context, &Connection::Stub::CheckCluster, request, absl::Now() + kLongest);
  if (!result.ok()) return result.status();
  if (!*result) {
    return absl::DeadlineExceededError(
        absl::StrCat("the coordinator did not end its examination within ", DurationText(kLongest), "; look at its log"));
  }
  return **std::move(result);
}

// What a shell takes for a path of this folder; it is looked at on the nodes.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return path.empty() || error ? path : absolute.lexically_normal().string();
}

Exit Examine(Context& context, const DoctorFlags& flags) {
  v1::CheckClusterRequest request;
  request.set_data_path(Absolute(flags.data));
  request.set_checkpoint_folder(Absolute(flags.folder));
  request.set_rates_beside_job(flags.rates);
  if (!flags.job.empty()) {
    if (Exit exit = RefuseDirectory(flags.job); exit.code != 0) return exit;
    const absl::StatusOr<JobFile> file = LoadJob(flags.job, flags.overrides);
    if (!file.ok()) return FromJobFile(file.status());
    // What is sent from here lies nowhere yet.
    if (!HerePath(file->config.data.path)) request.set_data_path(file->config.data.path);
    if (!HerePath(file->config.data.validation_path)) request.set_validation_path(file->config.data.validation_path);
    request.set_checkpoint_folder(file->config.checkpoint.folder);
    if (!InitialIsJob(file->config.checkpoint) && !HerePath(file->config.checkpoint.initial))
      request.set_initial(file->config.checkpoint.initial);
  }
  absl::StatusOr<v1::ClusterCheck> check = Ask(context, request);
  if (absl::IsInvalidArgument(check.status())) return FromServer(check.status());  // a path, not the cluster
  if (!check.ok()) return ReportFailure(context, check.status());
  v1::ClusterCheck all;
  *all.add_findings() = CoordinatorRow(context.coordinator, *check);
  for (const v1::Finding& finding : check->findings()) *all.add_findings() = finding;
  check->mutable_findings()->Swap(all.mutable_findings());
  return Report(context, *check, EX_DATAERR);
}

}  // namespace

Action AddDoctor(CLI::App& app) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::Option* data = app.add_option("--data", flags->data, "every node reads it and the digests are compared, as for data.path")
                          ->type_name("PATH");
  CLI::Option* folder =
      app.add_option(
             "--folder", flags->folder,
             "every node writes a small file there and reads what another wrote, as for checkpoint.folder; made if missing")
          ->type_name("FOLDER");
  CLI::Option* job = app.add_option("--job", flags->job,
                                    "takes the paths from a job file, also those of data.validation_path and checkpoint.initial")
                         ->type_name("FILE")
                         ->excludes(data)
                         ->excludes(folder);
  app.add_option("--set", flags->overrides, "section.key=value instead of the job file's, as for submit; may be given again")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->needs(job);
  app.add_flag("--rates", flags->rates, "measure the links although a job uses them");
  app.footer(
      "It looks at the coordinator, the nodes, their clocks, the ports between them and how fast their links are. Exit 65 when "
      "something is wrong, 69 without a coordinator. What this machine lacks to build and run is said by "
      "`./run doctor` instead.\n"
      "Example: motley doctor --job job.toml");
  return [flags](Context& context) { return Examine(context, *flags); };
}

}  // namespace motley::client
