#include "coordinator/client/plan_offline_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "coordinator/client/format.h"
#include "coordinator/client/plan_report.h"
#include "coordinator/client/plan_summary.h"
#include "coordinator/client/say_while.h"
#include "planner/answers/explain_plan.h"
#include "planner/answers/node_worth.h"
#include "planner/answers/plan_answer.h"
#include "planner/answers/runs_here.h"
#include "planner/answers/sensitivity.h"
#include "planner/simulator/picture.h"
#include "planner/simulator/trace.h"

namespace motley::client {
namespace {

// Of the measured series that the plan's latencies come from; books of a whole laboratory have many others.
std::vector<std::string> RepairsUsed(const OfflineInput& input) {
  std::vector<std::string> used;
  if (input.book == nullptr) return used;
  const planner::Costs& costs = input.setting->costs;
  for (int kind = 0; kind < costs.num_kinds(); ++kind) {
    for (const std::string& repair : costs.provenance(kind).repairs) {
      if (std::find(used.begin(), used.end(), repair) == used.end()) used.push_back(repair);
    }
  }
  return used;
}

// For what plans again many times: what takes longer than people like to wait says how far it is.
std::function<void(const std::string&, int, int)> PlanningAgain(Context& context) {
  return [&context, start = absl::Now()](const std::string& question, int done, int total) {
    const absl::Duration spent = absl::Now() - start;
    if (spent < absl::Seconds(1) || done == 0) return;
    context.err << absl::StrFormat("planning again: %s (%d of %d, about %.0f s left)\n", question, done + 1, total,
                                   absl::ToDoubleSeconds(spent) * (total - done) / done);
  };
}

absl::StatusOr<planner::PlanAnswer> Searched(Context& context, const OfflineInput& input) {
  const SayWhile say(context.err, "the plan is searched; --deadline or --budget-nodes would end that sooner");
  return planner::AnswerPlan(*input.setting, input.book.get());
}

// A row for each strategy; on a large cluster some take minutes.
std::vector<planner::ComparisonRow> CompareAll(Context& context, const planner::Setting& setting) {
  const absl::Time start = absl::Now();
  return planner::Compare(setting, [&](int done, int total) {
    if (done == total || absl::Now() - start < absl::Seconds(1)) return;
    context.err << absl::StrFormat("comparing strategies: %d of %d are done after %.0f s\n", done, total,
                                   absl::ToDoubleSeconds(absl::Now() - start));
  });
}

// What planning again tells of an answer.
struct Explanation {
  planner::Worth worth;
  planner::Sensitivity sensitivity;
};

// What asks for more planning comes after what is known at once.
void PrintText(Context& context, const PlanOfflineFlags& flags, const OfflineInput& input, const planner::PlanAnswer& result) {
  const planner::Plan& plan = result.evaluation.plan;
  const planner::RunsHere runs = planner::FindRunsHere(*input.setting, plan);
  PrintProse(context, CleanText(absl::StrCat(SummaryText(plan, result.bound, runs, input.setting->request), "\n",
                                             planner::LayoutText(plan), NotesText(plan, flags.verbose))));
  if (flags.timing) context.out << absl::StrFormat("planned in %.3f s\n", result.planning_seconds);
  if (!flags.explain) return;
  PrintProse(context, CleanText(planner::ExplainDetails(*input.setting, result.evaluation)));
  for (const std::string& repair : RepairsUsed(input)) PrintProse(context, CleanText(absl::StrCat("repaired: ", repair, "\n")));
  PrintProse(context, LegendText());
  context.out << std::flush;
}

void PrintMore(Context& context, const PlanOfflineFlags& flags, const planner::Plan& plan,
               const std::vector<planner::ComparisonRow>& rows) {
  if (flags.explain) {
    std::ostringstream text;
    PrintOthers(text, rows, plan);
    PrintProse(context, text.str());
  }
  if (!flags.compare) return;
  context.out << "\n";
  PrintComparison(context.out, context.screen, rows);
}

// Prints each part for people as soon as it is known.
Explanation Explain(Context& context, const OfflineInput& input, const planner::PlanAnswer& result) {
  const planner::Plan& plan = result.evaluation.plan;
  const auto print = [&context](const std::string& text) {
    if (context.json || text.empty()) return;
    PrintProse(context, CleanText(absl::StrCat("\n", text)));
    context.out << std::flush;
  };
  Explanation out;
  out.worth = planner::FindWorth(*input.setting, plan, input.book.get(), PlanningAgain(context));
  print(planner::ToText(out.worth, plan));
  out.sensitivity = planner::FindSensitivity(*input.setting, plan, input.book.get(), PlanningAgain(context));
  print(planner::ToText(out.sensitivity));
  return out;
}

Json ReportFor(const PlanOfflineFlags& flags, const OfflineInput& input, const planner::PlanAnswer& result,
               const std::vector<planner::ComparisonRow>& rows, const Explanation* explanation) {
  Json report = ReportOf(result.evaluation.plan);
  report["runnable"] = ToJson(planner::FindRunsHere(*input.setting, result.evaluation.plan), result.evaluation.plan);
  report["lower_bound"] = ToJson(result.bound);
  if (!input.warnings.empty()) report["warnings"] = input.warnings;
  if (flags.compare || flags.explain) report["comparison"] = ToJson(rows);
  if (flags.explain) {
    report["explanation"] = planner::ExplainPlan(*input.setting, result.evaluation, result.bound);
    report["repairs"] = RepairsUsed(input);
    report["worth"] = ToJson(explanation->worth);
    report["sensitivity"] = ToJson(explanation->sensitivity);
  }
  if (flags.timing) report["planning_seconds"] = result.planning_seconds;
  return report;
}

}  // namespace

Exit CheckOutputs(const PlanOfflineFlags& flags) {
  for (const std::string& path : {flags.trace, flags.svg}) {
    if (path.empty()) continue;
    if (absl::Status status = CheckWritable(path); !status.ok()) return FromOutput(status);
  }
  return {};
}

bool IsOffline(const PlanOfflineFlags& flags) { return !flags.offline.cluster.empty() || !flags.offline.model.empty(); }

void AddPlanningFlags(CLI::App& app, PlanOfflineFlags* flags) {
  AddSettingFlags(app, &flags->offline);
  AddRequestFlags(app, &flags->offline);
  app.add_flag("--timing", flags->timing, "how long the planning took; the only output that differs between two runs");
}

void AddShowingFlags(CLI::App& app, PlanOfflineFlags* flags) {
  app.add_flag("--explain", flags->explain, "what binds it, what else was possible, what the numbers rest on");
  app.add_flag("--verbose", flags->verbose, "how the search came to it, too");
  app.add_flag("--compare", flags->compare, "one row for each strategy too");
  app.add_option("--trace", flags->trace, "write the simulated step's timeline to this file (Chrome trace format)")
      ->type_name("FILE");
  app.add_option("--svg", flags->svg, "draw the simulated step into this file")->type_name("FILE");
}

Exit PlanOffline(Context& context, const PlanOfflineFlags& flags) {
  OfflineInput input;
  if (Exit exit = LoadOffline(flags.offline, &input); exit.code != 0) return exit;
  return PlanWith(context, flags, input);
}

Exit PlanWith(Context& context, const PlanOfflineFlags& flags, const OfflineInput& input, bool of_job) {
  Warn(context.err, input.warnings);
  if (Exit exit = CheckOutputs(flags); exit.code != 0) return exit;
  absl::StatusOr<planner::PlanAnswer> result = Searched(context, input);
  if (!result.ok()) {
    // The other strategies' rows may show the way.
    if (flags.compare && !context.json) PrintComparison(context.out, context.screen, CompareAll(context, *input.setting));
    return FromPlanner(result.status());
  }
  if (!of_job) return ShowPlan(context, flags, input, *result, nullptr);
  const Json document = {{"plan", Json::parse(planner::ToJson(result->evaluation.plan))}};
  return ShowPlan(context, flags, input, *result, &document);
}

Exit ShowPlan(Context& context, const PlanOfflineFlags& flags, const OfflineInput& input, const planner::PlanAnswer& result,
              const Json* document) {
  if (Exit exit = WritePictures(context, result.evaluation, flags.trace, flags.svg); exit.code != 0) return exit;
  if (!context.json) PrintText(context, flags, input, result);
  std::vector<planner::ComparisonRow> rows;
  if (flags.compare || flags.explain) rows = CompareAll(context, *input.setting);
  if (!context.json) PrintMore(context, flags, result.evaluation.plan, rows);
  std::optional<Explanation> explanation;
  if (flags.explain) explanation = Explain(context, input, result);
  if (!context.json) return {};
  Json report = ReportFor(flags, input, result, rows, explanation ? &*explanation : nullptr);
  if (document == nullptr) {
    PrintPlan(context.out, result.evaluation.plan, std::move(report));
  } else {
    Json whole = *document;
    whole["report"] = std::move(report);
    PrintDocument(context.out, whole);
  }
  return {};
}

Exit WritePictures(Context& context, const planner::Evaluation& evaluation, const std::string& trace, const std::string& svg) {
  if (!trace.empty()) {
    const absl::Status status = WriteFileDurably(trace, planner::TraceJson(evaluation.graph, evaluation.timeline));
    if (!status.ok()) return FromOutput(status);
    context.err << "the simulated step is in " << trace << "; open it in Perfetto (ui.perfetto.dev) or chrome://tracing\n";
  }
  if (!svg.empty()) {
    const planner::Plan& plan = evaluation.plan;
    planner::PictureOptions options;
    options.title = absl::StrCat(plan.strategy, ", ", plan.model, " on ", plan.cluster);
    const absl::Status status = WriteFileDurably(svg, planner::SvgTimeline(evaluation.graph, evaluation.timeline, options));
    if (!status.ok()) return FromOutput(status);
    context.err << "the picture is in " << svg << "\n";
  }
  return {};
}

}  // namespace motley::client
