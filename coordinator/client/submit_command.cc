#include "coordinator/client/submit_command.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/wire/job.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/load_job.h"
#include "coordinator/client/own_inputs.h"
#include "coordinator/client/plan_file.h"
#include "coordinator/client/running_job.h"
#include "planner/plan/plan.h"

namespace motley::client {
namespace {

constexpr size_t kLongestPrefix = 48;
constexpr size_t kRandomLetters = 6;
// gRPC's words for a message that it did not take in; a coordinator whose disk is full is another case, which passes.
constexpr char kTooLarge[] = "larger than max";

struct SubmitFlags {
  std::string file, id, plan, adopt;
  std::vector<std::string> overrides;
  bool wait = false;
};

// "My job!" -> "my-job-k3x9qf": what a person recognises, and enough chance that two never meet.
std::string GenerateId(const std::string& name) {
  std::string id;
  for (const char c : name.substr(0, kLongestPrefix)) {
    const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
    if (absl::ascii_isalnum(static_cast<unsigned char>(lower))) {
      id += lower;
    } else if (!id.empty() && id.back() != '-') {
      id += '-';
    }
  }
  if (id.empty()) id = "job";
  if (id.back() != '-') id += '-';
  static constexpr char kLetters[] = "abcdefghijkmnpqrstuvwxyz23456789";
  std::random_device random;
  for (size_t i = 0; i < kRandomLetters; ++i) id += kLetters[random() % (sizeof(kLetters) - 1)];
  return id;
}

// A second submit is told apart from this command's own retry: a person meant to start something.
Exit SayExists(Context& context, const v1::Job& job) {
  const std::string at = absl::StrCat(FormatState(job.state()), " at step ", job.step(), " of ", job.spec().training().steps());
  if (!HasEnded(job.state())) {
    if (!context.json) context.out << "job " << job.id() << " exists already: " << at << std::endl;
    return {};
  }
  const char* more = job.state() == v1::JOB_STATE_SUCCEEDED ? " --set training.steps=N" : "";
  return {kJobDidNotSucceed, absl::StrCat("job ", job.id(), " exists: ", at, "\nto go on with it: motley resume ", job.id(), more,
                                          "; to begin anew: another --id")};
}

// What the job of this id says, if somebody submitted it.
absl::StatusOr<std::optional<JobConfig>> KnownJob(Context& context, const std::string& id) {
  if (id.empty()) return std::nullopt;
  auto connection = context.Connect();
  if (!connection.ok()) return connection.status();
  v1::GetJobRequest request;
  request.set_job_id(id);
  const auto response = connection->Call(&Connection::Stub::GetJob, request);
  if (absl::IsUnavailable(response.status())) return response.status();
  if (!response.ok()) return std::nullopt;  // whatever else is wrong the submit says
  return wire::FromProto(response->job().spec());
}

Exit Submit(Context& context, const SubmitFlags& flags) {
  if (Exit exit = RefuseDirectory(flags.file); exit.code != 0) return exit;
  if (!flags.adopt.empty() && flags.id.empty())
    return {EX_USAGE, "--adopt needs --id: the nodes keep files by id and uid, both of which motley files lists"};
  auto file = LoadJob(flags.file, flags.overrides);
  if (!file.ok()) return FromJobFile(file.status());
  if (!flags.plan.empty()) {
    planner::Plan plan;
    if (Exit exit = LoadPlanFile(flags.plan, &plan); exit.code != 0) return exit;
    plan.cluster_file.clear();  // a path here; the job's cluster is another
    file->config.planner.plan_json = planner::ToJson(plan);
  }
  std::vector<OwnInput> inputs;
  const absl::StatusOr<std::optional<JobConfig>> known = KnownJob(context, flags.id);
  if (!known.ok()) return FromServer(known.status());
  if (Exit exit = TakeOwnInputs(context, *file, *known, file->config, &inputs); exit.code != 0) return exit;
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  const std::string name = file->config.name.empty() ? std::filesystem::path(flags.file).stem().string() : file->config.name;
  v1::SubmitJobRequest request;
  request.set_job_id(flags.id.empty() ? GenerateId(name) : flags.id);
  *request.mutable_spec() = wire::ToProto(file->config);
  request.set_adopt_uid(flags.adopt);
  auto response = connection->Call(&Connection::Stub::SubmitJob, request);
  if (absl::IsResourceExhausted(response.status()) && absl::StrContains(response.status().message(), kTooLarge)) {
    return {EX_DATAERR, absl::StrCat("the job is too large: ", std::string(response.status().message()))};
  }
  if (!response.ok()) return FromServer(response.status());
  const v1::Job& job = response->job();
  if (!response->created() && connection->attempts() == 1) {
    const Exit exists = SayExists(context, job);
    if (exists.code == 0) {
      if (Exit sent = SendOwnInputs(context, *connection, job.id(), inputs); sent.code != 0) return sent;
    }
    if (flags.wait) return Follow(context, *connection, job);
    if (context.json) PrintDocument(context.out, ToJson(job));
    return exists;
  }
  if (!context.json) context.out << "submitted job " << job.id() << std::endl;
  for (const std::string& note : file->notes) context.Say(absl::StrCat("note: ", note));
  if (Exit sent = SendOwnInputs(context, *connection, job.id(), inputs); sent.code != 0) return sent;
  return flags.wait ? Follow(context, *connection, job) : Begin(context, *connection, job);
}

}  // namespace

Action AddSubmit(CLI::App& app) {
  auto flags = std::make_shared<SubmitFlags>();
  app.add_option("FILE", flags->file, "the job file (TOML)")->required();
  // One value for each --set, so that the file's name may follow it.
  app.add_option("--set", flags->overrides, "section.key=value instead of the file's; may be given again")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--plan", flags->plan, "a plan given by hand instead of a strategy: JSON, or text as `motley plan` prints it")
      ->type_name("FILE");
  app.add_option("--job-id,--id", flags->id,
                 "[a-z0-9-], at most 63, no hyphen first; the same id and file again is the same job; generated if absent")
      ->type_name("ID");
  app.add_option("--adopt", flags->adopt,
                 "go on from what a job of this id left on the nodes' disks, whose coordinator lost its store: the uid, as "
                 "`motley files` has it; with --id")
      ->type_name("UID");
  app.add_flag("--wait", flags->wait, "print progress until the job has ended; exit 1 if it did not succeed");
  return [flags](Context& context) { return Submit(context, *flags); };
}

}  // namespace motley::client
