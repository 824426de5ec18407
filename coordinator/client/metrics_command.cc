#include "coordinator/client/metrics_command.h"

#include <CLI/CLI.hpp>

#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/progress.h"
#include "coordinator/client/watch.h"

namespace motley::client {
namespace {

Exit Metrics(Context& context, const std::string& id, bool watch_on) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  auto job = GetJob(*connection, id);
  if (!job.ok()) return FromServer(job.status());
  Json steps = Json::array();
  Screen screen = context.screen;
  screen.live = screen.live && watch_on;
  Progress progress(context.out, job->spec().training().steps(), 1, screen);
  Watch watch{id,
              [&](const v1::JobUpdate& update) {
                if (!context.json) {
                  if (watch_on || update.has_step()) progress.Show(update);
                } else if (update.has_step()) {
                  if (watch_on) {
                    PrintLine(context.out, ToJson(update.step()));
                  } else {
                    steps.push_back(ToJson(update.step()));
                  }
                }
              },
              [&](const std::string& text) {
                progress.Clear();
                context.Say(text);
              }};
  if (watch_on) {
    auto ended = WatchToEnd(*connection, watch);
    if (!ended.ok()) return FromServer(ended.status());
    if (context.json) return {};
    // The question was for the steps; how the job ended is no failure of the answer.
    const Exit end = EndOf(*ended, context.out, context.screen);
    if (!end.message.empty()) context.out << end.message << std::endl;
    return {};
  }
  if (absl::Status status = WatchUntilNow(*connection, *job, watch); !status.ok()) return FromServer(status);
  if (context.json) PrintDocument(context.out, Json{{"steps", steps}});
  return {};
}

}  // namespace

Action AddMetrics(CLI::App& app) {
  auto id = std::make_shared<std::string>();
  auto watch = std::make_shared<bool>(false);
  app.add_option("JOB", *id, "the job's id")->required();
  app.add_flag("-w,--watch", *watch, "keep printing until the job ends");
  return [id, watch](Context& context) { return Metrics(context, *id, *watch); };
}

}  // namespace motley::client
