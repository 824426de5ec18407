#include "coordinator/client/estimate_command.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "coordinator/client/estimate_presets.h"
#include "coordinator/client/estimate_tiers.h"
#include "coordinator/client/format.h"
#include "coordinator/client/offline_flags.h"
#include "coordinator/client/plan_report.h"
#include "coordinator/client/say_while.h"
#include "coordinator/client/table.h"
#include "planner/answers/fits.h"
#include "planner/answers/tier_fits.h"
#include "planner/costs/workload.h"

namespace motley::client {
namespace {

using planner::FitReport;
using planner::KindFit;
using planner::TierFits;

constexpr size_t kMostMissing = 8;  // lines; JSON has all

Json RunsHereJson(const FitReport& report) {
  Json json = {{"ok", report.runs_here.ok()}, {"why", nullptr}};
  if (!report.runs_here.ok()) json["why"] = std::string(report.runs_here.message());
  return json;
}

Json ReportJson(const planner::Setting& setting, const FitReport& report) {
  Json kinds = Json::array();
  for (const KindFit& kind : report.kinds) {
    kinds.push_back({{"device_model", kind.kind},
                     {"ranks", kind.ranks},
                     {"fullest_device", kind.device.value()},
                     {"peak_bytes", kind.memory.total()},
                     {"usable_bytes", kind.usable_bytes},
                     {"memory", ToJson(kind.memory)},
                     {"largest_microbatch", kind.largest_microbatch_keep},
                     {"largest_microbatch_recompute", kind.largest_microbatch_recompute}});
  }
  Json fewest = Json::array();
  for (const DeviceId& device : report.fewest) fewest.push_back(device.value());
  Json ways = Json::array();
  for (const planner::WayOut& way : report.ways) {
    ways.push_back({{"what", way.what},
                    {"step_seconds", way.step_seconds},
                    {"tokens_per_second", way.tokens_per_second()},
                    {"runs_here", way.runs_here_seconds > 0}});
    if (way.runs_here_seconds > 0) ways.back()["runs_here_seconds"] = way.runs_here_seconds;
  }
  const auto largest = [](const planner::Largest& l) {
    return Json{{"value", l.value}, {"at_least", l.at_least}, {"any", l.any}};
  };
  return {{"cluster", setting.cluster.name},
          {"model", setting.workload.model_name},
          {"global_batch", setting.workload.global_batch},
          {"seq_len", setting.workload.seq_len},
          {"dtype", std::string(DTypeName(setting.workload.dtype))},
          {"fits", report.fits},
          {"strategy", report.plan.strategy},
          {"lacking_bytes", report.lacking_bytes},
          {"missing", report.missing},
          {"runs_here", RunsHereJson(report)},
          {"host_bytes", report.host_bytes},
          {"state_bytes", report.state_bytes},
          {"usable_bytes", report.usable_bytes},
          {"kinds", std::move(kinds)},
          {"largest_global_batch", largest(report.batch)},
          {"longest_sequence", largest(report.sequence)},
          {"fewest_devices", std::move(fewest)},
          {"fewest_host_bytes", report.fewest_host_bytes},
          {"ways", std::move(ways)}};
}

std::string LargestText(const planner::Largest& largest) {
  if (largest.value == 0) return "none";
  if (largest.any) return "any (samples go one by one)";
  return absl::StrCat(largest.at_least ? "at least " : "", largest.value);
}

// " (with 75.0 GiB in the hosts' memory)".
std::string WithHostsText(int64_t bytes) {
  return bytes == 0 ? "" : absl::StrCat(" (with ", FormatBytes(bytes), " in the hosts' memory)");
}

// "2 of 8: A100-80GB n1/gpu0, L4 n2/gpu1".
std::string FewestText(const planner::Setting& setting, const std::vector<DeviceId>& devices) {
  std::vector<std::string> names;
  for (const DeviceId& device : devices) {
    const int kind = setting.KindOf(setting.FindDevice(device));
    names.push_back(absl::StrCat(setting.cluster.kinds[kind].name, " ", device.value()));
  }
  constexpr size_t kMostNames = 8;
  const size_t more = names.size() > kMostNames ? names.size() - kMostNames : 0;
  names.resize(names.size() - more);
  return absl::StrCat(devices.size(), " of ", setting.num_devices(), ": ", absl::StrJoin(names, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

// Where the state has room and a strategy has no plan, its reason, on the lines below, may be another than memory.
std::string Verdict(const FitReport& report) {
  if (report.fits) return absl::StrCat("fits", WithHostsText(report.host_bytes));
  return report.state_bytes > report.usable_bytes || !report.kinds.empty() ? "does not fit" : "no plan";
}

void PrintText(std::ostream& out, const Screen& screen, const planner::Setting& setting, const FitReport& report,
               const TierFits& tiers) {
  const planner::Workload& w = setting.workload;
  out << w.model_name << " on " << setting.cluster.name << ", batch " << w.global_batch << ", sequence " << w.seq_len << ", "
      << DTypeName(w.dtype) << ": " << Verdict(report) << "\n";
  out << "training state " << FormatBytes(report.state_bytes) << " in all, the cards' usable memory "
      << FormatBytes(report.usable_bytes) << "\n";
  for (size_t i = 0; i < report.missing.size() && i < kMostMissing; ++i) out << "  " << CleanText(report.missing[i]) << "\n";
  if (report.missing.size() > kMostMissing) out << "  and " << report.missing.size() - kMostMissing << " devices more\n";
  if (report.fits)
    out << CleanText(
               absl::StrCat("runs here: ", report.runs_here.ok() ? "yes" : absl::StrCat("no: ", report.runs_here.message())))
        << "\n";
  PrintTiers(out, screen, tiers);
  if (!report.kinds.empty()) {
    out << "\nthe fullest device of each kind, " << report.plan.strategy << " plan:\n";
    Table table({"DEVICE", "", "RANKS", "PARAMETERS", "GRADIENTS", "OPTIMIZER", "GATHERED", "SLOTS", "BOUNDARIES", "SAVED",
                 "WORKSPACE", "CONTEXT", "PEAK", "USABLE", "HOST", "MICROBATCH"});
    for (const KindFit& kind : report.kinds) {
      const planner::MemoryByPurpose& m = kind.memory;
      table.Add({kind.device.value(), kind.kind, absl::StrCat(kind.ranks), FormatBytes(m.parameters), FormatBytes(m.gradients),
                 FormatBytes(m.optimizer), FormatBytes(m.gathered), FormatBytes(m.slots), FormatBytes(m.boundaries),
                 FormatBytes(m.saved), FormatBytes(m.workspace), FormatBytes(m.context), FormatBytes(m.total()),
                 FormatBytes(kind.usable_bytes), FormatBytes(m.host),
                 absl::StrCat(kind.largest_microbatch_keep, "/", kind.largest_microbatch_recompute)});
    }
    table.Spare({"BOUNDARIES", "CONTEXT", "SLOTS", "WORKSPACE", "GATHERED", "GRADIENTS", "HOST"}).Print(out, screen);
    out << "MICROBATCH: the most samples at once, everything kept / everything recomputed\n";
  }
  out << "\nlargest global batch: " << LargestText(report.batch) << "\n";
  out << "longest sequence: " << LargestText(report.sequence) << " (the model has " << w.model.max_positions << " positions)\n";
  if (!report.ways.empty()) out << "what would work, the cheapest first:\n" << CleanText(planner::ToText(setting, report.ways));
  if (!report.fewest.empty())
    out << "fewest cards that hold it: " << FewestText(setting, report.fewest) << WithHostsText(report.fewest_host_bytes) << "\n";
}

struct Answer {
  FitReport report;
  TierFits tiers;
};

absl::StatusOr<Answer> Tried(Context& context, const OfflineInput& input) {
  const SayWhile say(context.err, "it is tried what fits, and what else would");
  MOTLEY_ASSIGN_OR_RETURN(FitReport report, planner::FindFit(*input.setting, input.book.get()));
  return Answer{std::move(report), planner::FindTierFits(*input.setting)};
}

Exit Estimate(Context& context, const OfflineFlags& given) {
  if (given.model.empty() && !given.cluster.empty()) return EstimatePresets(context, given);
  OfflineFlags flags = given;
  // A question about memory needs no batch: one sample a step, of a usual length.
  if (flags.global_batch == 0) flags.global_batch = 1;
  if (flags.seq_len == 0 && !flags.model.empty()) {
    absl::StatusOr<planner::Workload> workload = planner::LoadModel(flags.model);
    if (!workload.ok()) return FromPlanner(workload.status());
    flags.seq_len = std::min(workload->model.max_positions, kUsualSequence);
  }
  OfflineInput input;
  if (Exit exit = LoadOffline(flags, &input); exit.code != 0) return exit;
  Warn(context.err, input.warnings);
  const absl::StatusOr<Answer> answer = Tried(context, input);
  if (!answer.ok()) return FromPlanner(answer.status());
  if (context.json) {
    auto document = ReportJson(*input.setting, answer->report);
    document.update(ToJson(answer->tiers));
    if (!input.warnings.empty()) document["warnings"] = input.warnings;
    PrintDocument(context.out, document);
  } else {
    PrintText(context.out, context.screen, *input.setting, answer->report, answer->tiers);
  }
  return {answer->report.fits ? 0 : EX_DATAERR, ""};
}

}  // namespace

Action AddEstimate(CLI::App& app) {
  auto flags = std::make_shared<OfflineFlags>();
  AddSettingFlags(app, flags.get());
  AddRequestFlags(app, flags.get());
  app.footer(
      "Without --global-batch one sample a step, without --seq-len 2048 tokens or the model's positions. Without --model a row "
      "for "
      "each preset, with 64 samples a step. Exit 65 when it does not fit, or no preset does.\n"
      "Examples:\n"
      "  motley estimate --cluster zorse-a --model llama-13b --dtype fp16\n"
      "  motley estimate --cluster mine.toml --dtype bf16");
  return [flags](Context& context) { return Estimate(context, *flags); };
}

}  // namespace motley::client
