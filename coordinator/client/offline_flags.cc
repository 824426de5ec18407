#include "coordinator/client/offline_flags.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "coordinator/client/profile_warnings.h"
#include "planner/cluster/cluster_file.h"
#include "planner/strategies/catalog.h"

namespace motley::client {
namespace {

// Published measurements are a few MiB; more is another file.
constexpr int64_t kLongestProfile = int64_t{256} << 20;

template <typename... Parts>
Exit WrongUsage(const Parts&... parts) {
  return {kUsage, absl::StrCat(parts...)};
}

// "10%" or "0.1".
bool ParsePart(std::string text, double* part) {
  double scale = 1;
  if (!text.empty() && text.back() == '%') {
    text.pop_back();
    scale = 0.01;
  }
  if (!absl::SimpleAtod(text, part)) return false;
  *part *= scale;
  return std::isfinite(*part);
}

Exit ParseRequest(const OfflineFlags& flags, planner::PlanRequest* request) {
  request->strategy = flags.strategy;
  if (const absl::Status known = planner::FindInCatalog(flags.strategy).status(); !known.ok()) {
    return WrongUsage("--strategy: ", std::string(known.message()));
  }
  request->fidelity = flags.fidelity == "published" ? planner::Fidelity::kPublished : planner::Fidelity::kTuned;
  request->zero_stage = flags.zero_stage;
  request->exclude.clear();
  for (const std::string& place : flags.exclude) request->exclude.emplace_back(absl::StripAsciiWhitespace(place));
  request->max_tp = flags.max_tp;
  request->runnable = flags.runnable.value_or(request->runnable);
  if (flags.recompute == "auto") request->recompute = planner::RecomputePolicy::kAuto;
  if (flags.recompute == "none") request->recompute = planner::RecomputePolicy::kNone;
  if (flags.recompute == "full") request->recompute = planner::RecomputePolicy::kFull;
  if (!flags.offload.empty()) {
    const absl::StatusOr<OffloadKinds> kinds = ParseOffload(flags.offload);
    if (!kinds.ok()) return WrongUsage("--offload: ", std::string(kinds.status().message()));
    request->offload = *kinds;
  }
  if (!flags.pins.empty()) request->pins.clear();
  for (const std::string& pin : flags.pins) {
    const size_t equals = pin.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == pin.size()) {
      return WrongUsage("--pin '", pin, "' must be STAGE=NODE or STAGE=DEVICE, such as stage0=n1");
    }
    int stage = 0;
    const std::string where = pin.substr(0, equals);
    if (!absl::StartsWith(where, "stage") || !absl::SimpleAtoi(where.substr(5), &stage) || stage < 0) {
      return WrongUsage("--pin '", pin, "': the left side must be a stage, as in stage0=n1");
    }
    const auto [it, added] = request->pins.emplace(pin.substr(0, equals), pin.substr(equals + 1));
    if (!added && it->second != pin.substr(equals + 1)) {
      return WrongUsage("--pin ", it->first, " is given for ", it->second, " and for ", pin.substr(equals + 1),
                        "; a stage has one pin");
    }
  }
  if (!flags.memory_reserve.empty()) {
    double part = 0;
    if (!ParsePart(flags.memory_reserve, &part) || part < 0 || part >= 1) {
      return WrongUsage("--memory-reserve '", flags.memory_reserve, "' must be a part of a card's memory, such as 10% or 0.1");
    }
    request->memory_reserve = part;
  }
  if (!flags.budget_nodes.empty()) {
    double nodes = 0;
    if (!absl::SimpleAtod(flags.budget_nodes, &nodes) || !(nodes >= 1 && nodes <= 1e15) || nodes != std::floor(nodes)) {
      return WrongUsage("--budget-nodes '", flags.budget_nodes, "' must be a whole number from 1 on, such as 1e6");
    }
    request->budget_nodes = static_cast<int64_t>(nodes);
  }
  if (!flags.deadline.empty()) {
    absl::Duration deadline;
    if (!absl::ParseDuration(flags.deadline, &deadline) || deadline <= absl::ZeroDuration()) {
      return WrongUsage("--deadline '", flags.deadline, "' must be a time such as 2s or 500ms");
    }
    request->deadline = deadline;
  }
  return {};
}

// Plain words: the parser's own check prints the largest double.
std::string AtLeastOne(const std::string& text) {
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= 1) return "";
  const bool thousands = text.ends_with('k') && absl::SimpleAtoi(text.substr(0, text.size() - 1), &value);
  return absl::StrCat("must be a whole number and at least 1, got ", text,
                      thousands ? "; numbers are written out: 2048 or 2000 instead of 2k" : "");
}

std::string StateBytes(const std::string& text) {
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= 1 && value <= planner::kMostStateBytes) return "";
  return absl::StrCat("must be a whole number of bytes from 1 to ", planner::kMostStateBytes,
                      " (16 is AdamW in float32, 6 has 8-bit moments), got ", text);
}

Exit LoadProfiles(const std::vector<std::string>& paths, std::unique_ptr<planner::LatencyBook>* book) {
  for (const std::string& path : paths) {
    std::string text;
    if (Exit exit = ReadText(path, kLongestProfile, &text); exit.code != 0) return exit;
    absl::StatusOr<planner::LatencyBook> parsed = planner::LatencyBook::Parse(text, path);
    if (!parsed.ok()) return FromPlanner(parsed.status());
    if (*book == nullptr) {
      *book = std::make_unique<planner::LatencyBook>(*std::move(parsed));
    } else {
      (*book)->Merge(*std::move(parsed));
    }
  }
  return {};
}

// Whatever is named, first: a misspelt preset is the commonest slip, and other flags do not mend it.
Exit FindNamed(const OfflineFlags& flags, absl::StatusOr<planner::Cluster>* cluster,
               absl::StatusOr<planner::Workload>* workload) {
  std::vector<std::string> wrong;
  int code = 0;
  const auto note = [&](const absl::Status& status) {
    if (status.ok()) return;
    const Exit exit = FromPlanner(status);
    if (code == 0) code = exit.code;
    wrong.push_back(exit.message);
  };
  if (!flags.cluster.empty()) note((*cluster = planner::LoadCluster(flags.cluster)).status());
  if (!flags.model.empty()) note((*workload = planner::LoadModel(flags.model)).status());
  return {code, absl::StrJoin(wrong, "\n")};
}

// What the flags name and what is wrong of them, by line.
std::vector<std::string> WrongRequest(const OfflineFlags& flags) {
  std::vector<std::string> wrong;
  if (!flags.dtype.empty()) {
    const absl::Status dtype = ParseDType(flags.dtype).status();
    if (!dtype.ok()) wrong.push_back(absl::StrCat("--dtype: ", std::string(dtype.message())));
  }
  planner::PlanRequest request;
  if (const Exit exit = ParseRequest(flags, &request); exit.code != 0) wrong.push_back(exit.message);
  return wrong;
}

// All that is missing and wrong at once.
Exit CheckFlags(const OfflineFlags& flags) {
  std::vector<std::string> wrong;
  if (flags.cluster.empty()) wrong.push_back("--cluster is missing: a file or a preset ('motley clusters' lists them)");
  if (flags.model.empty()) wrong.push_back("--model is missing: a config.json or a preset ('motley models' lists them)");
  if (flags.global_batch == 0) wrong.push_back("--global-batch is missing: samples a step");
  if (flags.seq_len == 0) wrong.push_back("--seq-len is missing: tokens a sample");
  for (std::string& line : WrongRequest(flags)) wrong.push_back(std::move(line));
  return wrong.empty() ? Exit() : Exit{kUsage, absl::StrJoin(wrong, "\n")};
}

}  // namespace

void AddSettingFlags(CLI::App& app, OfflineFlags* flags) {
  app.add_option("--cluster", flags->cluster,
                 "a cluster file (TOML, docs/use/clusters.md) or a preset; 'motley clusters' lists them")
      ->type_name("FILE");
  app.add_option("--model", flags->model, "a HuggingFace config.json or a preset; 'motley models' lists them")->type_name("FILE");
  app.add_option("--global-batch", flags->global_batch, "samples a step")->type_name("N")->check(AtLeastOne);
  app.add_option("--seq-len", flags->seq_len, "tokens a sample")->type_name("N")->check(AtLeastOne);
  app.add_option("--dtype", flags->dtype, "fp32, fp16, bf16 or fp64")->type_name("DTYPE")->capture_default_str();
  app.add_option(
         "--profiles", flags->profiles,
         "measured latencies (JSON, docs/inside/profiles.md); give the flag again for another file, the last one's entries win")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

void AddRunnableFlag(CLI::App& app, const std::string& what, OfflineFlags* flags) {
  app.add_flag_function(
      "--runnable,!--no-runnable", [flags](int64_t count) { flags->runnable = count > 0; }, what);
}

void AddStateBytesFlag(CLI::App& app, OfflineFlags* flags) {
  app.add_option("--state-bytes-per-parameter", flags->state_bytes_per_parameter,
                 "of parameters, gradients and optimizer together, to ask what another optimizer would change: 6 for 8-bit "
                 "moments in a half type; else 16, as jobs keep AdamW in float32")
      ->type_name("N")
      ->check(StateBytes);
}

void AddRequestFlags(CLI::App& app, OfflineFlags* flags) {
  std::string known;
  for (const planner::CatalogEntry& entry : planner::Catalog()) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(entry.name));
  }
  app.add_option("--strategy", flags->strategy, known)->type_name("NAME")->capture_default_str();
  app.add_option("--fidelity", flags->fidelity, "the strategy with its paper's limits, or without those that have no reason")
      ->type_name("LIMITS")
      ->check(CLI::IsMember({"published", "tuned"}))
      ->capture_default_str();
  app.add_option("--zero-stage", flags->zero_stage, "0 to 3, where the strategy leaves it open")
      ->type_name("N")
      ->check(CLI::Range(0, 3));
  app.add_option("--pin", flags->pins, "stage0=n1: this node or device must be in that stage; may be given again")
      ->type_name("STAGE=PLACE")
      ->allow_extra_args(false);
  app.add_option("--exclude", flags->exclude, "a node or device that is not used, or several with commas; may be given again")
      ->type_name("PLACE")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--max-tp", flags->max_tp, "most devices of one tensor-parallel unit")
      ->type_name("N")
      ->check(AtLeastOne)
      ->capture_default_str();
  app.add_option("--recompute", flags->recompute, "recompute activations: auto as memory asks for it (the default), none, full")
      ->type_name("HOW")
      ->check(CLI::IsMember({"auto", "none", "full"}));
  app.add_option(
         "--offload", flags->offload,
         "what may wait in the hosts' memory: auto (all that may, the default), never, or kinds with commas: activations, "
         "parameters, optimizer")
      ->type_name("KINDS");
  AddRunnableFlag(app, "only plans that the engine runs today; of a JOB the default", flags);
  AddStateBytesFlag(app, flags);
  app.add_option("--memory-reserve", flags->memory_reserve,
                 "part of each card that no plan uses, such as 10%; else the cluster's")
      ->type_name("PART");
  app.add_option("--budget-nodes", flags->budget_nodes, "search nodes, such as 1e6: the same files give the same plan")
      ->type_name("N");
  app.add_option("--deadline", flags->deadline, "stop searching after this time (2s); the plan is marked as not reproducible")
      ->type_name("TIME");
}

Exit LoadOffline(const OfflineFlags& flags, OfflineInput* input) {
  absl::StatusOr<planner::Cluster> cluster;
  absl::StatusOr<planner::Workload> workload;
  if (Exit exit = FindNamed(flags, &cluster, &workload); exit.code != 0) return exit;
  if (Exit exit = CheckFlags(flags); exit.code != 0) return exit;
  return FinishOffline(flags, {*std::move(cluster), *std::move(workload), nullptr, {}}, input);
}

Exit CheckRequest(const OfflineFlags& flags) {
  const std::vector<std::string> wrong = WrongRequest(flags);
  return wrong.empty() ? Exit() : Exit{kUsage, absl::StrJoin(wrong, "\n")};
}

Exit FinishOffline(const OfflineFlags& flags, OfflineBasis basis, OfflineInput* input) {
  planner::PlanRequest request = std::move(basis.request);
  if (Exit exit = ParseRequest(flags, &request); exit.code != 0) return exit;
  if (flags.global_batch > 0) basis.workload.global_batch = flags.global_batch;
  if (flags.seq_len > 0) basis.workload.seq_len = flags.seq_len;
  basis.workload.state_bytes_per_parameter = flags.state_bytes_per_parameter;
  if (!flags.dtype.empty()) {
    const absl::StatusOr<DType> dtype = ParseDType(flags.dtype);
    if (!dtype.ok()) return WrongUsage("--dtype: ", std::string(dtype.status().message()));
    basis.workload.dtype = *dtype;
  }
  const std::vector<std::string> notes = basis.workload.notes;
  input->warnings.insert(input->warnings.end(), notes.begin(), notes.end());
  input->book = std::move(basis.book);
  if (Exit exit = LoadProfiles(flags.profiles, &input->book); exit.code != 0) return exit;
  absl::StatusOr<std::unique_ptr<planner::Setting>> setting =
      planner::Setting::Create(std::move(basis.cluster), std::move(basis.workload), std::move(request), input->book.get());
  if (!setting.ok()) return FromPlanner(setting.status());
  input->setting = *std::move(setting);
  const std::vector<std::string> doubts = ProfileWarnings(flags.profiles, *input->setting, input->book.get());
  input->warnings.insert(input->warnings.end(), doubts.begin(), doubts.end());
  return {};
}

Exit FromPlanner(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) return {EX_DATAERR, std::string(status.message())};
  if (absl::IsUnavailable(status)) return {EX_IOERR, std::string(status.message())};  // a file; nobody else is asked
  return FromServer(status);
}

void Warn(std::ostream& err, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) err << "motley: warning: " << CleanText(warning) << "\n";
}

Exit FromOutput(const absl::Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) return FromFiles(status);
  return {EX_CANTCREAT, std::string(status.message())};
}

Exit ReadText(const std::string& path, int64_t limit_bytes, std::string* text) {
  if (Exit exit = RefuseDirectory(path); exit.code != 0) return exit;
  absl::StatusOr<std::string> read = ReadSmallFile(path, limit_bytes);
  if (!read.ok()) return FromFiles(read.status());
  *text = *std::move(read);
  return {};
}

}  // namespace motley::client
