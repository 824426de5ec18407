#include "coordinator/client/simulate_command.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "coordinator/client/plan_file.h"
#include "coordinator/client/plan_offline_command.h"
#include "coordinator/client/plan_report.h"
#include "coordinator/client/plan_summary.h"
#include "planner/answers/explain_plan.h"
#include "planner/answers/given_plan.h"
#include "planner/answers/runs_here.h"
#include "planner/cluster/cluster_file.h"
#include "planner/costs/workload.h"
#include "planner/plan/ownership.h"

namespace motley::client {
namespace {

struct SimulateFlags {
  OfflineFlags offline;
  std::string plan, trace, svg;
  bool explain = false;
};

template <typename T>
Exit TakeFromPlan(const char* flag, const T& in_plan, const T& none, T* value) {
  if (*value == none) *value = in_plan;
  if (*value == in_plan || in_plan == none) return {};
  return {EX_DATAERR,
          absl::StrCat("the plan's is ", in_plan, ", ", flag, " says ", *value, "; a plan is priced for what it was made for")};
}

// The file that a plan names: from here, or else from beside the plan. One that is in neither place stays as it is.
std::string Located(const std::string& named, const std::string& plan_file) {
  std::error_code error;
  const std::filesystem::path beside = std::filesystem::path(plan_file).parent_path() / named;
  const bool moved = !named.empty() && !std::filesystem::exists(named, error) && std::filesystem::exists(beside, error);
  return moved ? beside.string() : named;
}

bool IsModelPreset(const std::string& name) {
  const auto& presets = planner::ModelPresets();
  return std::any_of(presets.begin(), presets.end(), [&](const planner::ModelPreset& preset) { return preset.name == name; });
}

bool IsClusterPreset(const std::string& name) {
  const auto& presets = planner::ClusterPresets();
  return std::any_of(presets.begin(), presets.end(), [&](const planner::ClusterPreset& preset) { return preset.name == name; });
}

// The cluster and the model that the plan names, where the command line names none.
Exit FindInputs(const planner::Plan& plan, const std::string& plan_file, OfflineFlags* flags) {
  if (flags->model.empty()) flags->model = IsModelPreset(plan.model) ? plan.model : Located(plan.model, plan_file);
  if (!flags->cluster.empty()) return {};
  flags->cluster = plan.cluster_file.empty() ? plan.cluster : plan.cluster_file;
  if (plan.cluster_file.empty() && IsClusterPreset(plan.cluster)) return {};
  flags->cluster = Located(flags->cluster, plan_file);
  std::error_code error;
  if (flags->cluster.empty() || std::filesystem::exists(flags->cluster, error)) return {};
  return {EX_NOINPUT, absl::StrCat(plan_file, ": its cluster is ", plan.cluster,
                                   plan.cluster_file.empty() ? "" : absl::StrCat(", read from ", plan.cluster_file),
                                   ", which is neither here nor beside the plan; give it with --cluster")};
}

// What the command line leaves out, the plan says: cluster, model, batch, sequence, precision, and whose limits it keeps.
Exit Complete(const planner::Plan& plan, const std::string& plan_file, OfflineFlags* flags) {
  if (Exit exit = FindInputs(plan, plan_file, flags); exit.code != 0) return exit;
  // Files from before it was said: tuned plans are finished without replicas.
  const bool has_replicas = plan.predicted.step_seconds > 0 && planner::HasReplicas(plan);
  if (plan.predicted.as_published || has_replicas) flags->fidelity = "published";
  if (Exit exit = TakeFromPlan<int64_t>("--global-batch", plan.global_batch, 0, &flags->global_batch); exit.code != 0)
    return exit;
  if (Exit exit = TakeFromPlan<int64_t>("--seq-len", plan.seq_len, 0, &flags->seq_len); exit.code != 0) return exit;
  const std::string dtype(DTypeName(plan.dtype));
  if (!flags->dtype.empty()) {
    const absl::StatusOr<DType> parsed = ParseDType(flags->dtype);
    if (!parsed.ok()) return {kUsage, absl::StrCat("--dtype: ", std::string(parsed.status().message()))};
    flags->dtype = std::string(DTypeName(*parsed));
  }
  return TakeFromPlan<std::string>("--dtype", dtype, "", &flags->dtype);
}

Exit Simulate(Context& context, const SimulateFlags& given) {
  SimulateFlags flags = given;
  planner::Plan plan;
  if (Exit exit = LoadPlanFile(flags.plan, &plan); exit.code != 0) return exit;
  if (Exit exit = Complete(plan, flags.plan, &flags.offline); exit.code != 0) return exit;
  OfflineInput input;
  if (Exit exit = LoadOffline(flags.offline, &input); exit.code != 0) return exit;
  absl::StatusOr<planner::GivenPlan> priced = planner::PriceGivenPlan(*input.setting, std::move(plan));
  if (!priced.ok()) {
    return FromPlanner(
        absl::Status(priced.status().code(), absl::StrCat(flags.plan, ": ", std::string(priced.status().message()))));
  }
  std::vector<std::string> warnings = input.warnings;
  warnings.insert(warnings.end(), priced->warnings.begin(), priced->warnings.end());
  Warn(context.err, warnings);
  const planner::Evaluation& evaluation = priced->evaluation;
  if (Exit exit = WritePictures(context, evaluation, flags.trace, flags.svg); exit.code != 0) return exit;
  if (context.json) {
    Json report = ReportOf(evaluation.plan);
    report["lower_bound"] = ToJson(priced->bound);
    report["warnings"] = warnings;
    report["broken_rules"] = priced->broken;
    report["does_not_fit"] = evaluation.does_not_fit;
    if (flags.explain) report["explanation"] = planner::ExplainPlan(*input.setting, evaluation, priced->bound);
    PrintPlan(context.out, evaluation.plan, std::move(report));
  } else {
    const planner::RunsHere runs = planner::FindRunsHere(*input.setting, evaluation.plan);
    PrintProse(context, CleanText(absl::StrCat(SummaryText(evaluation.plan, priced->bound, runs, input.setting->request), "\n",
                                               planner::LayoutText(evaluation.plan), NotesText(evaluation.plan, false))));
    if (flags.explain) PrintProse(context, CleanText(planner::ExplainDetails(*input.setting, evaluation)));
  }
  std::vector<std::string> wrong;
  for (const std::string& rule : priced->broken) wrong.push_back(absl::StrCat("breaks a rule: ", rule));
  for (const std::string& lack : evaluation.does_not_fit) wrong.push_back(absl::StrCat("does not fit: ", lack));
  if (wrong.empty()) return {};
  return {EX_DATAERR, absl::StrJoin(wrong, "\n")};
}

}  // namespace

Action AddSimulate(CLI::App& app) {
  auto flags = std::make_shared<SimulateFlags>();
  flags->offline.dtype.clear();  // the plan's
  app.add_option("PLAN", flags->plan, "a plan file: JSON")->required();
  AddSettingFlags(app, &flags->offline);
  app.add_option("--memory-reserve", flags->offline.memory_reserve, "part of each card that no plan uses, such as 10%")
      ->type_name("PART");
  AddRunnableFlag(app, "read, and changes no number: a plan is priced as it would run", &flags->offline);
  AddStateBytesFlag(app, &flags->offline);
  app.add_flag("--explain", flags->explain, "who does what, the lower bound, what the latencies rest on");
  app.add_option("--trace", flags->trace, "write the step's timeline to this file (Chrome trace format)")->type_name("FILE");
  app.add_option("--svg", flags->svg, "draw the step into this file")->type_name("FILE");
  app.footer(
      "Cluster, model, batch, sequence and dtype are the plan's where they are not given. Exit 65 when the "
      "plan breaks a rule or "
      "does not fit;\n"
      "it is priced all the same where a price has a meaning.\n"
      "Example: motley plan --cluster cephalo-a --model llama-7b --global-batch 128 --seq-len 512 -o json > plan.json\n"
      "         motley simulate plan.json --svg step.svg");
  return [flags](Context& context) { return Simulate(context, *flags); };
}

}  // namespace motley::client
