#include "coordinator/client/trace_command.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/count.h"
#include "common/base/files.h"
#include "common/wire/step_spans.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/live_inputs.h"
#include "coordinator/client/table.h"
#include "coordinator/client/waiting.h"
#include "coordinator/client/whole_number.h"
#include "planner/answers/measured_step.h"
#include "planner/simulator/picture.h"
#include "planner/simulator/trace.h"

namespace motley::client {
namespace {

constexpr size_t kShownDifferences = 10;

struct TraceFlags {
  std::string id, out, svg;
  int64_t step = 0;
};

// What the ranks said.
struct Measured {
  int64_t epoch = 0, step = 0;
  planner::RankSpans spans;
  std::vector<double> step_seconds;  // by rank
};

Exit AskRanks(Context& context, Connection& connection, const TraceFlags& flags, Measured* measured) {
  Waiting waiting(context);
  std::string wrong;
  v1::TraceStepRequest request;
  request.set_job_id(flags.id);
  request.set_step(flags.step);
  const absl::Status status =
      connection.Follow<v1::TraceStepUpdate>({.open =
                                                  [&](Connection::Stub& stub, grpc::ClientContext* call, int64_t) {
                                                    *measured = {};  // a stream that broke begins anew
                                                    return stub.TraceStep(call, request);
                                                  },
                                              .cursor_of = [](const v1::TraceStepUpdate&) { return int64_t{0}; },
                                              .use =
                                                  [&](const v1::TraceStepUpdate& update) {
                                                    if (!update.has_rank()) {
                                                      waiting.Show(update.doing());
                                                      return true;
                                                    }
                                                    const v1::RankTimeline& rank = update.rank();
                                                    auto spans = wire::FromProto(rank.spans());
                                                    if (!spans)
                                                      wrong =
                                                          absl::StrCat("rank ", rank.rank(), " sent spans that cannot be read");
                                                    if (spans) measured->spans.push_back(*std::move(spans));
                                                    measured->step_seconds.push_back(rank.step_seconds());
                                                    measured->epoch = rank.epoch();
                                                    measured->step = rank.step();
                                                    return wrong.empty();
                                                  },
                                              .say = [&](const std::string& text) { context.Say(text); }});
  if (!status.ok()) return FromServer(status);
  if (!wrong.empty()) return {EX_DATAERR, wrong};
  return {};
}

// The plan that the ranks run, simulated on what it was made from.
Exit Compare(const TraceFlags& flags, const v1::GetPlanResponse& response, Measured measured, planner::MeasuredStep* step) {
  if (response.epoch() != measured.epoch) {
    return {EX_TEMPFAIL, absl::StrCat("job ", flags.id, " was planned again while its step was read; ask again")};
  }
  OfflineInput input;
  if (Exit exit = LoadInputs(flags.id, response.inputs(), &input); exit.code != 0) return exit;
  const absl::StatusOr<planner::Plan> plan = planner::PlanFromJson(response.plan_json());
  if (!plan.ok()) return FromPlanner(plan.status());
  std::vector<Program> programs;
  for (const std::string& text : response.programs()) {
    absl::StatusOr<Program> program = ParseProgram(text);
    if (!program.ok()) return FromPlanner(program.status());
    programs.push_back(*std::move(program));
  }
  absl::StatusOr<planner::MeasuredStep> compared =
      planner::CompareStep(*input.setting, *plan, programs, std::move(measured.spans), measured.step_seconds);
  if (!compared.ok()) return FromPlanner(compared.status());
  *step = *std::move(compared);
  return {};
}

std::string Signed(double seconds) { return absl::StrFormat("%+.3f s", seconds); }

void Print(Context& context, const TraceFlags& flags, int64_t number, double seconds, const planner::MeasuredStep& step) {
  const double simulated = planner::ToSeconds(step.simulated.end);
  context.out << absl::StrFormat("step %d of job %s: measured %.3f s, simulated %.3f s (%+.1f %%)\n", number, flags.id, seconds,
                                 simulated, (seconds / simulated - 1) * 100);
  context.out << "where they differ most, seconds of a device in the step:\n";
  Table table({"DEVICE", "WHAT", "MEASURED", "SIMULATED", "DIFFERENCE"});
  for (size_t i = 0; i < std::min(kShownDifferences, step.differences.size()); ++i) {
    const planner::StepDifference& d = step.differences[i];
    table.Add({d.device.value(), d.what, absl::StrFormat("%.3f s", d.measured_seconds),
               absl::StrFormat("%.3f s", d.simulated_seconds), Signed(d.difference())});
  }
  table.Print(context.out, context.screen);
}

void PrintJson(Context& context, const TraceFlags& flags, int64_t number, double seconds, const planner::MeasuredStep& step) {
  Json differences = Json::array();
  for (const planner::StepDifference& d : step.differences) {
    differences.push_back(Json{{"device", d.device.value()},
                               {"what", d.what},
                               {"measured_seconds", d.measured_seconds},
                               {"simulated_seconds", d.simulated_seconds}});
  }
  PrintDocument(context.out, Json{{"job_id", flags.id},
                                  {"step", number},
                                  {"measured_seconds", seconds},
                                  {"simulated_seconds", planner::ToSeconds(step.simulated.end)},
                                  {"differences", std::move(differences)}});
}

// The timelines as the command line asks for them: both as a trace, the measured one as a picture.
Exit WriteFiles(Context& context, const TraceFlags& flags, int64_t number, const planner::MeasuredStep& step) {
  if (!flags.out.empty()) {
    const std::string json = planner::TraceJson(step.graph, {{"measured", &step.measured}, {"simulated", &step.simulated}});
    if (absl::Status status = WriteFileDurably(flags.out, json); !status.ok()) return FromOutput(status);
    context.err << "both steps are in " << flags.out << "; open it in Perfetto (ui.perfetto.dev) or chrome://tracing\n";
  }
  if (!flags.svg.empty()) {
    planner::PictureOptions options;
    options.title = absl::StrCat("step ", number, " of job ", flags.id, ", as measured");
    const std::string svg = planner::SvgTimeline(step.graph, step.measured, options);
    if (absl::Status status = WriteFileDurably(flags.svg, svg); !status.ok()) return FromOutput(status);
    context.err << "the measured step's picture is in " << flags.svg << "; motley plan " << flags.id
                << " --svg draws the simulated one\n";
  }
  return {};
}

Exit Trace(Context& context, TraceFlags flags) {
  // -o means a format everywhere else.
  if (flags.out == "json" || flags.out == "text") {
    context.json = flags.out == "json";
    flags.out.clear();
  }
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  Measured measured;
  if (Exit exit = AskRanks(context, *connection, flags, &measured); exit.code != 0) return exit;
  v1::GetPlanRequest request;
  request.set_job_id(flags.id);
  const auto plan = connection->Call(&Connection::Stub::GetPlan, request);
  if (!plan.ok()) return FromServer(plan.status());
  const int64_t number = measured.step;
  const double seconds = *std::max_element(measured.step_seconds.begin(), measured.step_seconds.end());
  planner::MeasuredStep step;
  if (Exit exit = Compare(flags, *plan, std::move(measured), &step); exit.code != 0) return exit;
  const Exit written = WriteFiles(context, flags, number, step);
  if (written.code != 0) return written;
  context.json ? PrintJson(context, flags, number, seconds, step) : Print(context, flags, number, seconds, step);
  return {};
}

}  // namespace

Action AddTrace(CLI::App& app) {
  auto flags = std::make_shared<TraceFlags>();
  app.add_option("JOB", flags->id, "the id of a job that trains")->required();
  app.add_option("--step", flags->step, "the newest by default; the ranks keep the last few, one to come is waited for")
      ->type_name("N")
      ->check(WholeFrom(1));
  app.add_option("-o,--out", flags->out, "write the timelines of all ranks to this file (Chrome trace format)")
      ->type_name("FILE");
  app.add_option("--svg", flags->svg, "draw the measured step into this file")->type_name("FILE");
  app.footer(
      "Example: motley trace my-job -o step.json\n"
      "The file has a measured and a simulated row for every device or tensor-parallel unit. `-o json` alone prints the "
      "differences as JSON.");
  return [flags](Context& context) { return Trace(context, *flags); };
}

}  // namespace motley::client
