#include "coordinator/client/live_inputs.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "common/wire/job.h"
#include "planner/cluster/cluster_file.h"
#include "planner/live/job_request.h"

namespace motley::client {
namespace {

using Inputs = v1::GetPlanningInputsResponse;

// The coordinator's texts are files like any other: what does not parse is another version's.
Exit Parse(const std::string& job, const Inputs& inputs, OfflineBasis* basis) {
  const std::string source = absl::StrCat("job ", job);
  absl::StatusOr<planner::Cluster> cluster = planner::ParseCluster(inputs.cluster_toml(), source);
  if (!cluster.ok()) return FromPlanner(cluster.status());
  absl::StatusOr<ModelShape> model = ParseHfConfig(inputs.model_config_json(), source);
  if (!model.ok()) return FromPlanner(model.status());
  absl::StatusOr<planner::LatencyBook> book = planner::LatencyBook::Parse(inputs.profile_json(), source);
  if (!book.ok()) return FromPlanner(book.status());
  absl::StatusOr<DType> dtype = ParseDType(inputs.dtype());
  if (!dtype.ok()) return FromPlanner(dtype.status());
  basis->cluster = *std::move(cluster);
  basis->workload.model_name = inputs.model_name();
  basis->workload.model = *std::move(model);
  basis->workload.global_batch = inputs.global_batch();
  basis->workload.seq_len = inputs.seq_len();
  basis->workload.dtype = *dtype;
  PlannerSection section;
  if (inputs.has_planner()) {
    v1::JobSpec spec;
    *spec.mutable_planner() = inputs.planner();
    section = wire::FromProto(spec).planner;
  }
  absl::StatusOr<planner::PlanRequest> request = planner::RequestOf(section);
  if (!request.ok()) return FromPlanner(request.status());
  basis->request = *std::move(request);
  basis->request.steps_in_turn = inputs.steps_in_turn();
  basis->book = std::make_unique<planner::LatencyBook>(*std::move(book));
  return {};
}

// As a shell takes it.
std::string ShellWord(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '/' || c == '.' || c == '_' || c == '-';
  });
  return plain ? text : absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

Exit Save(Context& context, const Inputs& inputs, bool runnable, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FromOutput(absl::UnavailableError(absl::StrCat("cannot make folder ", folder, ": ", error.message())));
  const std::filesystem::path root(folder);
  const std::string cluster = (root / "cluster.toml").string(), model = (root / "config.json").string(),
                    profiles = (root / "profiles.json").string();
  for (const auto& [path, text] : {std::pair(cluster, inputs.cluster_toml()), std::pair(model, inputs.model_config_json()),
                                   std::pair(profiles, inputs.profile_json())}) {
    if (absl::Status status = WriteFileDurably(path, text); !status.ok()) return FromOutput(status);
  }
  context.err << CleanText(absl::StrCat("saved; the same without the cluster: motley plan --cluster ", ShellWord(cluster),
                                        " --model ", ShellWord(model), " --profiles ", ShellWord(profiles), " --global-batch ",
                                        inputs.global_batch(), " --seq-len ", inputs.seq_len(), " --dtype ", inputs.dtype(),
                                        runnable ? " --runnable" : ""))
              << "\n";
  return {};
}

}  // namespace

Exit LoadLive(Context& context, const std::string& job, const OfflineFlags& flags, const std::string& folder,
              OfflineInput* input) {
  if (Exit exit = CheckRequest(flags); exit.code != 0) return exit;
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  v1::GetPlanningInputsRequest request;
  request.set_job_id(job);
  const absl::StatusOr<Inputs> inputs = connection->Call(&Connection::Stub::GetPlanningInputs, request);
  if (!inputs.ok()) return FromServer(inputs.status());
  OfflineBasis basis;
  if (Exit exit = Parse(job, *inputs, &basis); exit.code != 0) return exit;
  DropAbsentPins(basis.cluster, &basis.request);
  if (!folder.empty()) {
    if (Exit exit = Save(context, *inputs, flags.runnable.value_or(true), folder); exit.code != 0) return exit;
  }
  input->warnings.assign(inputs->warnings().begin(), inputs->warnings().end());
  return FinishOffline(flags, std::move(basis), input);
}

Exit LoadInputs(const std::string& job, const Inputs& inputs, OfflineInput* input) {
  OfflineBasis basis;
  if (Exit exit = Parse(job, inputs, &basis); exit.code != 0) return exit;
  input->book = std::move(basis.book);
  DropAbsentPins(basis.cluster, &basis.request);
  absl::StatusOr<std::unique_ptr<planner::Setting>> setting =
      planner::Setting::Create(std::move(basis.cluster), std::move(basis.workload), std::move(basis.request), input->book.get());
  if (!setting.ok()) return FromPlanner(setting.status());
  input->setting = *std::move(setting);
  return {};
}

}  // namespace motley::client
