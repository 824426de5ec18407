#include "coordinator/client/own_inputs.h"

#include <sysexits.h>

#include <filesystem>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "common/inputs/path_sample.h"
#include "common/job/job_input.h"
#include "common/weights/weights_folder.h"
#include "common/wire/files.h"
#include "coordinator/client/format.h"
#include "coordinator/client/result_stream.h"
#include "coordinator/client/send_input.h"
#include "coordinator/client/waiting.h"

namespace motley::client {
namespace {

constexpr int kSampledBlocks = 8;

// Where a path is to be read.
struct Decision {
  bool send = false;
  std::string note;               // for people
  std::vector<std::string> same;  // nodes that have it
  Exit exit;
};

std::string Nodes(const std::vector<std::string>& names) {
  return absl::StrCat(names.size() == 1 ? "node " : "nodes ", absl::StrJoin(names, ", "));
}

// By what each node has there. Where nobody says anything it is as if all had it: whoever trains finds out.
Decision Decide(const InputPath& path, const v1::PathOnNodes& answer) {
  std::vector<std::string> other, absent, same;
  std::string why;  // a node has nothing there that jobs may read
  for (const v1::PathOnNode& node : answer.nodes()) {
    const std::string name = CleanLine(node.node());
    if (node.sampled() == v1::SAMPLED_OTHER) other.push_back(name);
    if (node.sampled() == v1::SAMPLED_SAME) same.push_back(name);
    if (node.sampled() != v1::SAMPLED_ABSENT) continue;
    absent.push_back(name);
    if (why.empty() && !node.error().empty()) why = absl::StrCat(" (", name, ": ", CleanLine(node.error()), ")");
  }
  const std::string& at = *path.path;
  if (!other.empty()) {
    const std::string refused = absl::StrCat(path.key, ": ", at, " is here, and with other contents on ", Nodes(other),
                                             "; give here:", at, " for this machine's, or nodes:", at, " for theirs");
    return {false, "", {}, {EX_DATAERR, refused}};
  }
  if (absent.empty()) return {};
  const std::string note = absl::StrCat(path.key, ": ", at, " is not on ", Nodes(absent), ": it comes from here",
                                        same.empty() ? "" : absl::StrCat(" and from ", Nodes(same)), why);
  return {true, note, std::move(same), {}};
}

// Of weights a folder that holds some.
bool MayBeSent(const InputPath& path) {
  if (std::string_view(path.key) != kInitialKey) return true;
  const absl::StatusOr<std::string> folder = FindWeightsFolder(*path.path, OpenAnywhere);
  return folder.ok() && !folder->empty();
}

// What does not lie here is the nodes'.
Decision LookAtNodes(Context& context, const InputPath& path) {
  if (!path.path->starts_with('/') || !MayBeSent(path)) return {};
  std::random_device random;
  const auto draw = [&](uint64_t below) { return (uint64_t{random()} << 32 | random()) % below; };
  const absl::StatusOr<PathSample> sample = SamplePath(*path.path, kSampledBlocks, draw);
  if (!sample.ok() || sample->files == 0) return {};  // links alone are known on the nodes
  v1::LookAtPathRequest request;
  request.set_path(*path.path);
  *request.mutable_sample() = wire::ToProto(*sample);
  const auto answer = AwaitResult(context, &Connection::Stub::LookAtPath, request);
  // An older coordinator has no such request.
  if (absl::IsUnimplemented(answer.status())) return {};
  if (!answer.ok()) return {false, "", {}, FromServer(answer.status())};
  return *answer ? Decide(path, **answer) : Decision();
}

// As the job has it: what was sent for it is sent again.
Decision AsKnown(const InputPath& path, const JobConfig& known) {
  JobConfig copy = known;  // the table points into a mutable value
  for (const InputPath& its : InputPaths(copy)) {
    if (std::string_view(its.key) != path.key || !ParseInput(*its.path)) continue;
    return {path.path->starts_with('/') && FileExists(*path.path), "", {}, {}};
  }
  return {};
}

// Tokens of Megatron-LM are two files, and without the other one the first is another maker's.
absl::Status CheckIsAlone(const std::string& here) {
  const std::filesystem::path index = std::filesystem::path(here).replace_extension(".idx");
  if (!here.ends_with(".bin") || !FileExists(index.string())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(here, " goes with ", index.string(),
                                                 ", and one file or folder is sent; put both on every node, and give that path"));
}

absl::StatusOr<InputList> ListOwn(Context& context, const InputPath& path, std::string& here) {
  Waiting waiting(context);
  InputChoice choice;
  if (std::string_view(path.key) == kInitialKey) {
    const absl::StatusOr<std::string> folder = FindWeightsFolder(here, OpenAnywhere);
    if (!folder.ok()) return folder.status();
    if (folder->empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          here,
          " holds no weights as HuggingFace's libraries write them, and nothing else is sent; of a job's checkpoints "
          "'motley export' makes them"));
    }
    here = *folder;
    choice = ChoiceOfWeights();
  } else if (const absl::Status alone = CheckIsAlone(here); !alone.ok()) {
    return alone;
  }
  const absl::Time begun = absl::Now();
  return ListInput(
      here,
      [&](int64_t read, int64_t all) {
        waiting.Show(absl::StrCat("reading ", here, ", ", HowFarOf(read, all, absl::Now() - begun)));
        return true;
      },
      choice);
}

Exit SendOne(Context& context, Connection& connection, const std::string& job, const OwnInput& input) {
  Waiting waiting(context);
  const absl::Time begun = absl::Now();
  std::string said;
  Sending sending;
  sending.elsewhere = input.elsewhere.path;
  sending.elsewhere_nodes = input.elsewhere.nodes;
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
    return {};
  }
  Exit exit = absl::IsAborted(sent) ? Exit{EX_DATAERR, std::string(sent.message())} : FromServer(sent);
  exit.message = absl::StrCat(exit.message, "\njob ", job, " waits for ", input.list.name, "; the same command with --id ", job,
                              " goes on, 'motley stop ", job, "' gives it up");
  return exit;
}

}  // namespace

Exit TakeOwnInputs(Context& context, const JobFile& file, const std::optional<JobConfig>& known, JobConfig& config,
                   std::vector<OwnInput>* inputs) {
  for (const InputPath& path : InputPaths(config)) {
    std::optional<std::string> here = HerePath(*path.path);
    ElsewhereOnNodes elsewhere;
    if (!here && !file.on_nodes.contains(path.key)) {
      Decision decision = known ? AsKnown(path, *known) : LookAtNodes(context, path);
      if (decision.exit.code != 0) return std::move(decision.exit);
      if (!decision.note.empty()) context.Say(decision.note);
      if (decision.send) here = *path.path;
      elsewhere.nodes = std::move(decision.same);
    }
    if (!here) continue;
    absl::StatusOr<InputList> list = ListOwn(context, path, *here);
    if (!list.ok()) {
      return FromFiles(absl::Status(list.status().code(), absl::StrCat(path.key, ": ", std::string(list.status().message()))));
    }
    if (!elsewhere.nodes.empty()) elsewhere.path = *here;
    *path.path = PathOf(InputOf(*list));
    inputs->push_back({*here, std::move(elsewhere), *std::move(list)});
  }
  return {};
}

Exit SendOwnInputs(Context& context, Connection& connection, const std::string& job, const std::vector<OwnInput>& inputs) {
  for (const OwnInput& input : inputs) {
    if (Exit exit = SendOne(context, connection, job, input); exit.code != 0) return exit;
  }
  return {};
}

}  // namespace motley::client
