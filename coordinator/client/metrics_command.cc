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
  Progress progress(context.out, job->spec().training().steps(), 1);
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
              [&](const std::string& text) { context.err << "motley: " << text << std::endl; }};
  const absl::Status status = watch_on ? WatchToEnd(*connection, watch).status() : WatchUntilNow(*connection, *job, watch);
  if (!status.ok()) return FromServer(status);
  if (context.json && !watch_on) PrintDocument(context.out, Json{{"steps", steps}});
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
