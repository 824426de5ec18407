#include "coordinator/client/wait_command.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/progress.h"
#include "coordinator/client/watch.h"

namespace motley::client {
namespace {

struct WaitFlags {
  std::string id;
  double timeout_seconds = 0;
};

Exit Wait(Context& context, const WaitFlags& flags) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  Watch watch;
  watch.job_id = flags.id;
  watch.use = [](const v1::JobUpdate&) {};
  watch.say = [&context](const std::string& text) { context.Say(text); };
  if (flags.timeout_seconds > 0) watch.deadline = absl::Now() + absl::Seconds(flags.timeout_seconds);
  auto job = WatchToEnd(*connection, watch);
  if (!job.ok()) return FromServer(job.status());
  if (context.json) PrintDocument(context.out, ToJson(*job));
  if (!HasEnded(job->state())) {
    return {EX_TEMPFAIL,
            absl::StrCat("job ", job->id(), " has not ended within ", FormatSeconds(flags.timeout_seconds), ": ",
                         FormatState(job->state()), " at step ", job->step(), " of ", job->spec().training().steps())};
  }
  if (!context.json) return EndOf(*job, context.out, context.screen);
  return {job->state() == v1::JOB_STATE_SUCCEEDED ? 0 : kJobDidNotSucceed, ""};
}

std::string CheckSeconds(const std::string& text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && seconds > 0) return "";
  return absl::StrCat("must be a number of seconds, more than 0, got '", text, "'");
}

}  // namespace

Action AddWait(CLI::App& app) {
  auto flags = std::make_shared<WaitFlags>();
  app.add_option("JOB", flags->id, "the job's id")->required();
  app.add_option("--timeout", flags->timeout_seconds, "give up after so many seconds, with exit code 75")
      ->type_name("SECONDS")
      ->check(CheckSeconds);
  return [flags](Context& context) { return Wait(context, *flags); };
}

}  // namespace motley::client
