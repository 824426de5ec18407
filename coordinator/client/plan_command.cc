#include "coordinator/client/plan_command.h"

#include <CLI/CLI.hpp>

#include "common/files.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"

namespace motley::client {
namespace {

struct Flags {
  std::string id, trace;
  bool explain = false, program = false;
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

Exit Plan(Context& context, const Flags& flags) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  v1::GetPlanRequest request;
  request.set_job_id(flags.id);
  auto plan = connection->Call(&Connection::Stub::GetPlan, request);
  if (!plan.ok()) return FromServer(plan.status());
  if (!flags.trace.empty()) {
    if (absl::Status status = WriteFileDurably(flags.trace, plan->trace_json()); !status.ok()) return FromFiles(status);
    context.err << "the simulated step is in " << flags.trace << "; open it in Perfetto (ui.perfetto.dev) or chrome://tracing\n";
  }
  if (context.json) {
    PrintJson(context, *plan);
    return {};
  }
  // The explanation begins with the plan.
  PrintText(context.out, flags.explain ? plan->explanation() : plan->plan_text());
  if (flags.program) {
    for (const std::string& program : plan->programs()) PrintText(context.out, "\n" + program);
  }
  return {};
}

}  // namespace

Action AddPlan(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("JOB", flags->id, "the job's id")->required();
  app.add_flag("--explain", flags->explain, "what binds it, the alternatives, what one more device would give");
  app.add_flag("--program", flags->program, "the ranks' programs too");
  app.add_option("--trace", flags->trace, "write the simulated step's timeline to this file (Chrome trace format)");
  return [flags](Context& context) { return Plan(context, *flags); };
}

}  // namespace motley::client
