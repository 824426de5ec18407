#include "coordinator/client/metrics_command.h"

#include <CLI/CLI.hpp>
#include <deque>
#include <memory>
#include <string>

#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/progress.h"
#include "coordinator/client/watch.h"

namespace motley::client {
namespace {

struct MetricsFlags {
  std::string id;
  bool watch = false;
  int limit = 0;  // 0 = all
};

// The steps so far; the newest `limit` of them.
Exit PrintSteps(Context& context, Connection& connection, const v1::Job& job, const MetricsFlags& flags) {
  std::deque<v1::JobUpdate> steps;
  const Watch watch{job.id(),
                    [&](const v1::JobUpdate& update) {
                      if (!update.has_step()) return;
                      steps.push_back(update);
                      if (flags.limit > 0 && steps.size() > static_cast<size_t>(flags.limit)) steps.pop_front();
                    },
                    [&](const std::string& text) { context.Say(text); }};
  if (absl::Status status = WatchUntilNow(connection, job, watch); !status.ok()) return FromServer(status);
  if (context.json) {
    Json list = Json::array();
    for (const v1::JobUpdate& update : steps) list.push_back(ToJson(update.step()));
    PrintDocument(context.out, Json{{"steps", list}});
    return {};
  }
  Screen screen = context.screen;
  screen.live = false;
  Progress progress(context.out, job.spec().training().steps(), 1, screen);
  for (const v1::JobUpdate& update : steps) progress.Show(update);
  return {};
}

Exit WatchSteps(Context& context, Connection& connection, const v1::Job& job) {
  Progress progress(context.out, job.spec().training().steps(), 1, context.screen);
  const Watch watch{job.id(),
                    [&](const v1::JobUpdate& update) {
                      if (!context.json) {
                        progress.Show(update);
                      } else if (update.has_step()) {
                        PrintLine(context.out, ToJson(update.step()));
                      }
                    },
                    [&](const std::string& text) {
                      progress.Clear();
                      context.Say(text);
                    }};
  auto ended = WatchToEnd(connection, watch);
  if (!ended.ok()) return FromServer(ended.status());
  if (context.json) return {};
  // The question was for the steps; how the job ended is no failure of the answer.
  const Exit end = EndOf(*ended, context.out, context.screen);
  if (!end.message.empty()) context.out << end.message << std::endl;
  return {};
}

Exit Metrics(Context& context, const MetricsFlags& flags) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  auto job = GetJob(*connection, flags.id);
  if (!job.ok()) return FromServer(job.status());
  return flags.watch ? WatchSteps(context, *connection, *job) : PrintSteps(context, *connection, *job, flags);
}

}  // namespace

Action AddMetrics(CLI::App& app) {
  auto flags = std::make_shared<MetricsFlags>();
  app.add_option("JOB", flags->id, "the job's id")->required();
  CLI::Option* watch = app.add_flag("-w,--watch", flags->watch, "keep printing until the job ends");
  app.add_option("--limit", flags->limit, "only the newest so many steps")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->excludes(watch);
  return [flags](Context& context) { return Metrics(context, *flags); };
}

}  // namespace motley::client
