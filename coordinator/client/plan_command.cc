#include "coordinator/client/plan_command.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "common/base/parse_json.h"
#include "common/wire/transport.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/live_inputs.h"
#include "coordinator/client/plan_diff_command.h"
#include "coordinator/client/plan_offline_command.h"
#include "coordinator/client/transport_lines.h"
#include "coordinator/client/whole_number.h"
#include "planner/answers/given_plan.h"
#include "planner/plan/schedule_listing.h"

namespace motley::client {
namespace {

struct PlanFlags {
  PlanOfflineFlags offline;  // trace and explain of both kinds of planning
  std::string id;
  bool program = false, schedule = false;
  int rank = -1;                             // of the programs; -1 = all
  std::string save_inputs;                   // folder
  std::vector<const CLI::Option*> planning;  // flags that ask for a plan to be made, where JOB alone shows the one in force
};

bool AsksForPlanning(const PlanFlags& flags) {
  return std::any_of(flags.planning.begin(), flags.planning.end(), [](const CLI::Option* option) { return option->count() > 0; });
}

bool AsksForMore(const PlanOfflineFlags& flags) {
  return flags.explain || flags.compare || !flags.svg.empty() || !flags.trace.empty();
}

Json DocumentOf(const v1::GetPlanResponse& plan) {
  // The plan is JSON inside a string: taken apart, so that jq reaches it.
  absl::StatusOr<Json> parsed = ParseOrderedJson(plan.plan_json(), "plan");
  Json json{{"generation", plan.epoch()},
            {"plan", parsed.ok() ? *std::move(parsed) : Json()},
            {"plan_text", plan.plan_text()},
            {"explanation", plan.explanation()},
            {"programs", Json::array()}};
  for (const std::string& program : plan.programs()) json["programs"].push_back(program);
  json["transports"] = ToJson(plan)["transports"];
  return json;
}

// Where the job has a card; others' ranks have no choice.
void PrintTransports(Context& context, const v1::GetPlanResponse& plan) {
  if (context.json) return;
  for (const std::string& line : TransportLines(wire::FromProto(plan.transports()), TransportsAre::kPlanned)) {
    PrintProse(context, CleanLine(absl::StrCat("planned transport ", line)) + "\n");
  }
}

// A plan that does not parse is an older coordinator's; nothing else of the answer depends on it.
void PrintSchedule(Context& context, const PlanFlags& flags, const v1::GetPlanResponse& response) {
  if (!flags.schedule || context.json) return;
  const absl::StatusOr<planner::Plan> plan = planner::PlanFromJson(response.plan_json());
  PrintProse(context, "\n" + (plan.ok() ? planner::ScheduleListing(*plan) : std::string(plan.status().message()) + "\n"));
}

void PrintPrograms(Context& context, const PlanFlags& flags, const v1::GetPlanResponse& plan) {
  if (!flags.program || context.json) return;
  for (int r = 0; r < plan.programs_size(); ++r) {
    if (flags.rank < 0 || flags.rank == r) PrintProse(context, "\n" + plan.programs(r));
  }
}

// The plan in force priced again on what it was made from: then it is explained, compared and drawn as any other.
Exit ShowInForce(Context& context, const PlanFlags& flags, const v1::GetPlanResponse& response) {
  if (Exit exit = CheckOutputs(flags.offline); exit.code != 0) return exit;
  OfflineInput input;
  if (Exit exit = LoadInputs(flags.id, response.inputs(), &input); exit.code != 0) return exit;
  absl::StatusOr<planner::Plan> plan = planner::PlanFromJson(response.plan_json());
  if (!plan.ok()) return FromPlanner(plan.status());
  absl::StatusOr<planner::GivenPlan> priced = planner::PriceGivenPlan(*input.setting, *std::move(plan));
  if (!priced.ok()) return FromPlanner(priced.status());
  const Json document = DocumentOf(response);
  return ShowPlan(context, flags.offline, input, {std::move(priced->evaluation), std::move(priced->bound), 0}, &document);
}

// What the coordinator rendered when it planned: all that there is of a plan whose inputs were not kept.
Exit ShowStored(Context& context, const PlanFlags& flags, const v1::GetPlanResponse& plan) {
  if (flags.offline.compare || !flags.offline.svg.empty()) {
    return {EX_DATAERR,
            absl::StrCat("the plan of job ", flags.id, " was made by an older coordinator, which did not keep what it ",
                         "was made from; the next one, after a restart or when a node joins or leaves, will have it")};
  }
  if (!flags.offline.trace.empty()) {
    if (absl::Status status = WriteFileDurably(flags.offline.trace, plan.trace_json()); !status.ok()) return FromOutput(status);
    context.err << "the simulated step is in " << flags.offline.trace
                << "; open it in Perfetto (ui.perfetto.dev) or chrome://tracing\n";
  }
  if (context.json) {
    PrintDocument(context.out, DocumentOf(plan));
    return {};
  }
  PrintProse(context, flags.offline.explain ? plan.explanation() : plan.plan_text());
  PrintTransports(context, plan);
  PrintSchedule(context, flags, plan);
  PrintPrograms(context, flags, plan);
  return {};
}

Exit PlanLive(Context& context, const PlanFlags& flags) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  v1::GetPlanRequest request;
  request.set_job_id(flags.id);
  auto plan = connection->Call(&Connection::Stub::GetPlan, request);
  if (!plan.ok()) return FromServer(plan.status());
  if (AsksForMore(flags.offline) && plan->has_inputs()) {
    if (Exit exit = ShowInForce(context, flags, *plan); exit.code != 0) return exit;
    PrintTransports(context, *plan);
    PrintSchedule(context, flags, *plan);
    PrintPrograms(context, flags, *plan);
    return {};
  }
  return ShowStored(context, flags, *plan);
}

// The live cluster's own numbers, the offline planner's answer.
Exit PlanOnLive(Context& context, const PlanFlags& flags) {
  if (flags.program || flags.schedule) {
    return {kUsage, absl::StrCat("--", flags.program ? "programs" : "schedule",
                                 " shows that of the plan in force; leave it out, or the flags that make another plan")};
  }
  OfflineInput input;
  if (Exit exit = LoadLive(context, flags.id, flags.offline.offline, flags.save_inputs, &input); exit.code != 0) return exit;
  return PlanWith(context, flags.offline, input, true);
}

Exit RunPlan(Context& context, PlanFlags flags) {
  const bool offline = IsOffline(flags.offline);
  if (offline && !flags.id.empty()) {
    const OfflineFlags& given = flags.offline.offline;
    return {kUsage,
            absl::StrCat("'", flags.id,
                         "' is taken for JOB, and a job has its own cluster and model: give JOB, or --cluster and --model",
                         given.profiles.empty() ? "" : "; if it is a profile, give --profiles again before it",
                         given.exclude.empty() ? "" : "; if it is a place, --exclude takes several with commas")};
  }
  if (flags.id.empty() && !flags.save_inputs.empty())
    return {kUsage, "--save-inputs saves what is known of a JOB's cluster; give JOB"};
  if (offline) {
    if (flags.offline.offline.dtype.empty()) flags.offline.offline.dtype = OfflineFlags().dtype;
    return PlanOffline(context, flags.offline);
  }
  if (flags.id.empty()) return {kUsage, "give JOB for a live cluster, or --cluster and --model to plan without one"};
  return AsksForPlanning(flags) ? PlanOnLive(context, flags) : PlanLive(context, flags);
}

}  // namespace

Action AddPlan(CLI::App& app) {
  auto flags = std::make_shared<PlanFlags>();
  app.add_option("JOB", flags->id, "the job's id, for the plan that a live cluster runs, or others that it could run");
  app.add_flag("--schedule", flags->schedule,
               "of a job: what each rank computes, in which order, on which samples (docs/inside/plan-to-step.md)");
  app.add_flag("--programs", flags->program, "of a job: the ranks' programs too, as text (docs/inside/program.md)");
  app.add_option("--rank", flags->rank, "with --programs: of this rank alone")->type_name("R")->check(WholeFrom(0));
  AddShowingFlags(app, &flags->offline);
  const size_t shared = app.get_options().size();
  flags->offline.offline.dtype.clear();  // the job's, or float32
  AddPlanningFlags(app, &flags->offline);
  app.add_option("--save-inputs", flags->save_inputs,
                 "of a job: write its cluster, model and measured latencies into this folder, to plan without it later")
      ->type_name("FOLDER");
  for (size_t i = shared; i < app.get_options().size(); ++i) flags->planning.push_back(app.get_options()[i]);
  app.footer(
      "JOB alone (with --explain, --compare, --schedule, --programs, --trace, --svg) shows the plan in force; any other flag "
      "makes "
      "a plan of what the job's cluster measured, and changes nothing. Batch, sequence, dtype, recomputation and pins are then "
      "the job's where they are not given; without a job, dtype is float32.\n"
      "Examples:\n"
      "  motley plan my-job --explain\n"
      "  motley plan my-job --compare\n"
      "  motley plan my-job --schedule\n"
      "  motley plan my-job --svg step.svg\n"
      "  motley plan my-job --strategy hexiscale --explain --exclude n3\n"
      "  motley plan my-job --save-inputs folder\n"
      "  motley plan --cluster cephalo-a --model llama-7b --global-batch 128 --seq-len 512 --dtype fp16 --compare\n"
      "  motley plan --cluster mine.toml --model config.json --global-batch 512 --seq-len 2048 --profiles p.json -o json > "
      "plan.json\n"
      "  motley plan --cluster mine.toml --model llama-7b --global-batch 64 --seq-len 512 --pin stage0=n1 --exclude n3/gpu2\n"
      "  motley plan diff before.json after.json");
  app.require_subcommand(0, 1);
  CLI::App* diff = nullptr;
  const Action run_diff = AddPlanDiff(app, &diff);
  return [flags, diff, run_diff](Context& context) { return diff->parsed() ? run_diff(context) : RunPlan(context, *flags); };
}

}  // namespace motley::client
