#include "coordinator/client/metrics_command.h"

#include <CLI/CLI.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/progress.h"
#include "coordinator/client/watch.h"
#include "coordinator/client/whole_number.h"

namespace motley::client {
namespace {

constexpr int kStepsBeforeWatching = 10;

struct MetricsFlags {
  std::string id;
  bool watch = false;
  std::optional<int> limit;  // without: all; before those that are watched, kStepsBeforeWatching for people
};

// The steps so far; the newest `limit` of them.
Exit PrintSteps(Context& context, Connection& connection, const v1::Job& job, const MetricsFlags& flags) {
  std::deque<v1::JobUpdate> steps;
  const Watch watch{job.id(),
                    [&](const v1::JobUpdate& update) {
                      if (!update.has_step()) return;
                      steps.push_back(update);
                      if (flags.limit && steps.size() > static_cast<size_t>(*flags.limit)) steps.pop_front();
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

// Hands on the newest `limit` steps so far and what happened between them. What is kept of a job may be hours of it. `watch`
// goes on behind them.
absl::Status ShowNewest(Connection& connection, const v1::Job& job, int limit, Watch* watch) {
  std::optional<v1::JobUpdate> greeting;  // the job as it is: with it the stream began
  std::deque<v1::JobUpdate> newest;
  int64_t steps = 0;
  Watch past = *watch;
  past.use = [&](const v1::JobUpdate& update) {
    watch->cursor = std::max(watch->cursor, update.cursor());
    if (!greeting && newest.empty() && update.has_job()) {
      greeting = update;
      return;
    }
    newest.push_back(update);
    steps += update.has_step();
    for (; steps > limit; newest.pop_front()) steps -= newest.front().has_step();
  };
  if (absl::Status status = WatchUntilNow(connection, job, past); !status.ok()) return status;
  if (greeting) watch->use(*greeting);
  for (const v1::JobUpdate& update : newest) watch->use(update);
  return absl::OkStatus();
}

Exit WatchSteps(Context& context, Connection& connection, const v1::Job& job, std::optional<int> limit) {
  Progress progress(context.out, job.spec().training().steps(), 1, context.screen);
  Watch watch{job.id(),
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
  // A program that reads lines gets all, unless it says how many.
  if (!limit && !context.json) limit = kStepsBeforeWatching;
  if (limit) {
    if (absl::Status status = ShowNewest(connection, job, *limit, &watch); !status.ok()) return FromServer(status);
  }
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
  return flags.watch ? WatchSteps(context, *connection, *job, flags.limit) : PrintSteps(context, *connection, *job, flags);
}

}  // namespace

Action AddMetrics(CLI::App& app) {
  auto flags = std::make_shared<MetricsFlags>();
  app.add_option("JOB", flags->id, "the job's id")->required();
  app.add_flag("-w,--watch", flags->watch,
               absl::StrCat("keep printing until the job ends; begins with the newest ", kStepsBeforeWatching,
                            " steps, in JSON with all"));
  app.add_option("-n,--limit", flags->limit, "only the newest so many of the steps so far")->type_name("N")->check(WholeFrom(1));
  return [flags](Context& context) { return Metrics(context, *flags); };
}

}  // namespace motley::client
