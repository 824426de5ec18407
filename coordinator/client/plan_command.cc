#include "coordinator/client/plan_command.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/plan_diff_command.h"
#include "coordinator/client/plan_offline_command.h"

namespace motley::client {
namespace {

struct Flags {
  PlanOfflineFlags offline;  // trace and explain of both kinds of planning
  std::string id;
  bool program = false;
};

// Every line ends, whether the text did or not.
void PrintText(std::ostream& out, const std::string& text) {
  out << text;
  if (!text.empty() && text.back() != '\n') out << "\n";
}

void PrintJson(Context& context, const v1::GetPlanResponse& plan) {
  // The plan is JSON inside a string: taken apart, so that jq reaches it.
  Json parsed = Json::parse(plan.plan_json(), nullptr, /*allow_exceptions=*/false);
  Json json{{"epoch", plan.epoch()},
            {"plan", parsed.is_discarded() ? Json() : std::move(parsed)},
            {"plan_text", plan.plan_text()},
            {"explanation", plan.explanation()},
            {"programs", Json::array()}};
  for (const std::string& program : plan.programs()) json["programs"].push_back(program);
  PrintDocument(context.out, json);
}

Exit PlanLive(Context& context, const Flags& flags) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  v1::GetPlanRequest request;
  request.set_job_id(flags.id);
  auto plan = connection->Call(&Connection::Stub::GetPlan, request);
  if (!plan.ok()) return FromServer(plan.status());
  if (!flags.offline.trace.empty()) {
    if (absl::Status status = WriteFileDurably(flags.offline.trace, plan->trace_json()); !status.ok()) return FromOutput(status);
    context.err << "the simulated step is in " << flags.offline.trace
                << "; open it in Perfetto (ui.perfetto.dev) or chrome://tracing\n";
  }
  if (context.json) {
    PrintJson(context, *plan);
    return {};
  }
  // The explanation begins with the plan.
  PrintText(context.out, flags.offline.explain ? plan->explanation() : plan->plan_text());
  if (flags.program) {
    for (const std::string& program : plan->programs()) PrintText(context.out, "\n" + program);
  }
  return {};
}

Exit Plan(Context& context, const Flags& flags) {
  const bool offline = IsOffline(flags.offline);
  if (offline && !flags.id.empty()) {
    return {kUsage, absl::StrCat("a job has its own cluster and model: give JOB, or --cluster and --model",
                                 flags.offline.offline.profiles.empty()
                                     ? ""
                                     : absl::StrCat("; if ", flags.id, " is a profile, give --profiles again before it"))};
  }
  if (offline) return PlanOffline(context, flags.offline);
  if (flags.id.empty()) return {kUsage, "give JOB for a live cluster, or --cluster and --model to plan without one"};
  return PlanLive(context, flags);
}

}  // namespace

Action AddPlan(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("JOB", flags->id, "the job's id, for the plan that a live cluster runs");
  app.add_flag("--explain", flags->offline.explain, "what binds it, what else was possible, what the numbers rest on");
  app.add_flag("--program", flags->program, "of a job: the ranks' programs too");
  app.add_option("--trace", flags->offline.trace, "write the simulated step's timeline to this file (Chrome trace format)");
  AddPlanOfflineFlags(app, &flags->offline);
  app.footer(
      "Examples:\n"
      "  motley plan my-job --explain\n"
      "  motley plan --cluster cephalo-a --model llama-7b --global-batch 128 --seq-len 512 --dtype fp16 --compare\n"
      "  motley plan --cluster mine.toml --model config.json --global-batch 512 --seq-len 2048 --profiles p.json -o json > "
      "plan.json\n"
      "  motley plan --cluster mine.toml --model llama-7b --global-batch 64 --seq-len 512 --pin stage0=n1 --exclude n3/gpu2\n"
      "  motley plan diff before.json after.json");
  app.require_subcommand(0, 1);
  CLI::App* diff = nullptr;
  const Action run_diff = AddPlanDiff(app, &diff);
  return [flags, diff, run_diff](Context& context) { return diff->parsed() ? run_diff(context) : Plan(context, *flags); };
}

}  // namespace motley::client
