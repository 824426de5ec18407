#include "coordinator/client/resume_command.h"

#include <CLI/CLI.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/adopt_file.h"
#include "common/job/job_file.h"
#include "common/wire/job.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/running_job.h"
#include "coordinator/client/watch.h"

namespace motley::client {
namespace {

struct ResumeFlags {
  std::string id;
  std::vector<std::string> overrides;
  std::optional<int64_t> from;
  bool wait = false;
};

// Before the job has a checkpoint, its folder decides: the coordinator looks there when its turn has come, and the plan's event
// says what it found.
std::string WhatGoesOn(const v1::Job& job, const ResumeFlags& flags) {
  const std::string steps = absl::StrCat(" to step ", job.spec().training().steps());
  if (flags.from) return absl::StrCat("goes on from its newest checkpoint up to step ", *flags.from, steps);
  if (!job.newest_checkpoint().empty()) return absl::StrCat("goes on from ", job.newest_checkpoint(), steps);
  const v1::CheckpointSection& checkpoint = job.spec().checkpoint();
  std::string text = absl::StrCat(
      "begins again from ",
      checkpoint.initial().empty() ? "the initial weights" : absl::StrCat("the weights of ", checkpoint.initial()), steps);
  if (checkpoint.folder().empty()) return text;
  return absl::StrCat(text, ", unless ", AdoptPath(absl::StrCat(checkpoint.folder(), "/", job.id())), " names a checkpoint");
}

Exit Resume(Context& context, const ResumeFlags& flags) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  v1::ResumeJobRequest request;
  request.set_job_id(flags.id);
  if (flags.from) request.set_from_step(*flags.from);
  if (!flags.overrides.empty()) {
    auto job = GetJob(*connection, flags.id);
    if (!job.ok()) return FromServer(job.status());
    auto config = WithOverrides(wire::FromProto(job->spec()), flags.overrides);
    if (!config.ok()) return FromJobFile(config.status());
    *request.mutable_changes() = wire::ToProto(*config);
  }
  auto response = connection->Call(&Connection::Stub::ResumeJob, request);
  if (!response.ok()) return FromServer(response.status());
  const v1::Job& job = response->job();
  if (!response->resumed() && connection->attempts() == 1) {
    if (context.json) PrintDocument(context.out, ToJson(job));
    return {kJobDidNotSucceed, absl::StrCat("job ", job.id(), " has not ended: ", FormatState(job.state()), " at step ",
                                            job.step(), " of ", job.spec().training().steps())};
  }
  if (!context.json) {
    context.out << "job " << job.id() << " " << WhatGoesOn(job, flags) << std::endl;
  }
  const auto show = flags.wait ? Follow : Begin;
  return show(context, *connection, job, response->cursor());
}

}  // namespace

Action AddResume(CLI::App& app) {
  auto flags = std::make_shared<ResumeFlags>();
  app.add_option("JOB", flags->id, "the job's id; it has ended")->required();
  app.add_option("--set", flags->overrides, "section.key=value instead of the job's, say training.steps=200; may be given again")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option(
         "--from", flags->from,
         "from its newest checkpoint up to this step, and not from its newest: of a job whose checkpoints lie on its nodes' "
         "disks; what is newer is given up")
      ->type_name("STEP");
  app.add_flag("--wait", flags->wait, "print progress until the job has ended; exit 1 if it did not succeed");
  return [flags](Context& context) { return Resume(context, *flags); };
}

}  // namespace motley::client
