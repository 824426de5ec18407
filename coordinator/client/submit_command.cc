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
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/job/job_input.h"
#include "common/wire/job.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/load_job.h"
#include "coordinator/client/plan_file.h"
#include "coordinator/client/running_job.h"
#include "coordinator/client/send_input.h"
#include "coordinator/client/waiting.h"
#include "planner/plan/plan.h"

namespace motley::client {
namespace {

constexpr size_t kLongestPrefix = 48;
constexpr size_t kRandomLetters = 6;
// gRPC's words for a message that it did not take in; a coordinator whose disk is full is another case, which passes.
constexpr char kTooLarge[] = "larger than max";

struct SubmitFlags {
  std::string file, id, plan;
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

// What the job reads from this machine.
struct OwnInput {
  std::string path;
  InputList list;
};

// Tokens of Megatron-LM are two files, and without the other one the first is another maker's.
absl::Status CheckIsAlone(const InputPath& path, const std::string& here) {
  const std::filesystem::path index = std::filesystem::path(here).replace_extension(".idx");
  if (!here.ends_with(".bin") || !FileExists(index.string())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path.key, ": ", here, " goes with ", index.string(),
                                                 ", and one file or folder is sent; put both on every node, and give that path"));
}

// "here:" paths become inputs, which are named by what they hold now.
absl::StatusOr<std::vector<OwnInput>> TakeOwnInputs(Context& context, JobConfig& config) {
  std::vector<OwnInput> inputs;
  Waiting waiting(context);
  for (const InputPath& path : InputPaths(config)) {
    const std::optional<std::string> here = HerePath(*path.path);
    if (!here) continue;
    MOTLEY_RETURN_IF_ERROR(CheckIsAlone(path, *here));
    const absl::Time begun = absl::Now();
    auto list = ListInput(*here, [&](int64_t read, int64_t all) {
      waiting.Show(absl::StrCat("reading ", *here, ", ", HowFarOf(read, all, absl::Now() - begun)));
      return true;
    });
    if (!list.ok()) return absl::Status(list.status().code(), absl::StrCat(path.key, ": ", std::string(list.status().message())));
    *path.path = PathOf(InputOf(*list));
    inputs.push_back({*here, *std::move(list)});
  }
  return inputs;
}

Exit SendOwnInputs(Context& context, Connection& connection, const std::string& job, const std::vector<OwnInput>& inputs) {
  for (const OwnInput& input : inputs) {
    Waiting waiting(context);
    const absl::Time begun = absl::Now();
    std::string said;
    Sending sending;
    sending.progress = [&](const SentBytes& bytes) {
      waiting.Show(absl::StrCat("sending ", input.list.name, " to node ", bytes.node, ", ",
                                HowFarOf(bytes.sent, bytes.all, absl::Now() - begun)));
    };
    sending.say = [&](const std::string& text) {
      if (std::exchange(said, text) != text) context.Say(text);
    };
    const absl::Status sent = SendInput(connection, job, input.list, input.path, sending);
    waiting.Clear();
    if (sent.ok()) {
      if (!context.json)
        context.out << input.list.name << ", " << FormatBytes(input.list.bytes()) << ", is on the cluster" << std::endl;
      continue;
    }
    Exit exit = absl::IsAborted(sent) ? Exit{EX_DATAERR, std::string(sent.message())} : FromServer(sent);
    exit.message = absl::StrCat(exit.message, "\njob ", job, " waits for ", input.list.name, "; the same command with --id ", job,
                                " goes on, 'motley stop ", job, "' gives it up");
    return exit;
  }
  return {};
}

Exit Submit(Context& context, const SubmitFlags& flags) {
  if (Exit exit = RefuseDirectory(flags.file); exit.code != 0) return exit;
  auto file = LoadJob(flags.file, flags.overrides);
  if (!file.ok()) return FromJobFile(file.status());
  if (!flags.plan.empty()) {
    planner::Plan plan;
    if (Exit exit = LoadPlanFile(flags.plan, &plan); exit.code != 0) return exit;
    plan.cluster_file.clear();  // a path here; the job's cluster is another
    file->config.planner.plan_json = planner::ToJson(plan);
  }
  const auto inputs = TakeOwnInputs(context, file->config);
  if (!inputs.ok()) return FromFiles(inputs.status());
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  const std::string name = file->config.name.empty() ? std::filesystem::path(flags.file).stem().string() : file->config.name;
  v1::SubmitJobRequest request;
  request.set_job_id(flags.id.empty() ? GenerateId(name) : flags.id);
  *request.mutable_spec() = wire::ToProto(file->config);
  auto response = connection->Call(&Connection::Stub::SubmitJob, request);
  if (absl::IsResourceExhausted(response.status()) && absl::StrContains(response.status().message(), kTooLarge)) {
    return {EX_DATAERR, absl::StrCat("the job is too large: ", std::string(response.status().message()))};
  }
  if (!response.ok()) return FromServer(response.status());
  const v1::Job& job = response->job();
  if (!response->created() && connection->attempts() == 1) {
    const Exit exists = SayExists(context, job);
    if (exists.code == 0) {
      if (Exit sent = SendOwnInputs(context, *connection, job.id(), *inputs); sent.code != 0) return sent;
    }
    if (flags.wait) return Follow(context, *connection, job);
    if (context.json) PrintDocument(context.out, ToJson(job));
    return exists;
  }
  if (!context.json) context.out << "submitted job " << job.id() << std::endl;
  for (const std::string& note : file->notes) context.Say(absl::StrCat("note: ", note));
  if (Exit sent = SendOwnInputs(context, *connection, job.id(), *inputs); sent.code != 0) return sent;
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
  app.add_flag("--wait", flags->wait, "print progress until the job has ended; exit 1 if it did not succeed");
  return [flags](Context& context) { return Submit(context, *flags); };
}

}  // namespace motley::client
