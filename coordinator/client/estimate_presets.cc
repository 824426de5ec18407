#include "coordinator/client/estimate_presets.h"

#include <sysexits.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/dtype.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/table.h"
#include "planner/answers/preset_fits.h"
#include "planner/costs/workload.h"

namespace motley::client {
namespace {

using planner::PresetFit;

constexpr int64_t kUsualBatch = 64;
constexpr absl::Duration kWithoutAWord = absl::Seconds(2);

Json PresetJson(const PresetFit& row) {
  const auto known = [](double value) { return value > 0 ? Json(value) : Json(); };
  const auto answer = [](const absl::Status& status) {
    return Json{{"ok", status.ok()}, {"why", status.ok() ? Json() : Json(std::string(status.message()))}};
  };
  return {{"model", row.model},
          {"parameters", row.parameters},
          {"seq_len", row.seq_len},
          {"fits", row.fits.ok()},
          {"why_not", row.fits.ok() ? Json() : Json(std::string(row.fits.message()))},
          {"lacking_bytes", row.lacking_bytes},
          {"host_bytes", row.host_bytes},
          {"runs_here", answer(row.runs_here)},
          {"step_seconds", known(row.step_seconds)},
          {"tokens_per_second", known(row.tokens_per_second())}};
}

std::string FitsText(const PresetFit& row) {
  if (!row.fits.ok()) return row.lacking_bytes > 0 ? absl::StrCat("lacks ", FormatBytes(row.lacking_bytes)) : "no";
  return row.host_bytes > 0 ? absl::StrCat(FormatBytes(row.host_bytes), " in hosts") : "yes";
}

void PrintRows(Context& context, const planner::Setting& setting, const std::vector<PresetFit>& rows) {
  const planner::Workload& w = setting.workload;
  context.out << "on " << setting.cluster.name << ", batch " << w.global_batch << ", sequence " << w.seq_len
              << " or the model's positions, " << DTypeName(w.dtype) << ":\n\n";
  Table table({"MODEL", "PARAMETERS", "SEQUENCE", "FITS", "RUNS HERE", "TOKENS/S"});
  for (const PresetFit& row : rows) {
    table.Add({row.model, absl::StrFormat("%.3g B", static_cast<double>(row.parameters) / 1e9), absl::StrCat(row.seq_len),
               FitsText(row), row.runs_here.ok() ? "yes" : "no",
               row.step_seconds > 0 ? absl::StrFormat("%.0f", row.tokens_per_second()) : "-"});
  }
  table.Spare({"SEQUENCE"}).Print(context.out, context.screen);
  context.out << "\nFITS: what the fullest device lacks; TOKENS/S: of a short search, of what runs here where that does; 'motley "
                 "plan' may find a faster plan\n";
}

// A line every two seconds, of what takes that long.
planner::PresetProgress SayingHowFar(std::ostream& err) {
  return [&err, start = absl::Now(), said = absl::Now()](int done, int total) mutable {
    const absl::Time now = absl::Now();
    if (now - said < kWithoutAWord || done == total) return;
    said = now;
    err << absl::StrFormat("models: %d of %d are done after %.0f s\n", done, total, absl::ToDoubleSeconds(now - start));
  };
}

}  // namespace

Exit EstimatePresets(Context& context, const OfflineFlags& given) {
  OfflineFlags flags = given;
  flags.model = std::string(planner::ModelPresets().front().name);  // stands for all
  const int64_t seq_len = flags.seq_len > 0 ? flags.seq_len : kUsualSequence;
  flags.seq_len = 1;
  if (flags.global_batch == 0) flags.global_batch = kUsualBatch;
  OfflineInput input;
  if (Exit exit = LoadOffline(flags, &input); exit.code != 0) return exit;
  planner::Setting& setting = *input.setting;
  setting.workload.seq_len = seq_len;
  setting.request.exclude.clear();  // they are gone from the setting's cluster
  const auto rows =
      planner::FindPresetFits(setting.cluster, setting.workload, setting.request, input.book.get(), SayingHowFar(context.err));
  if (!rows.ok()) return FromPlanner(rows.status());
  if (context.json) {
    Json list = Json::array();
    for (const PresetFit& row : *rows) list.push_back(PresetJson(row));
    PrintDocument(context.out, Json{{"cluster", setting.cluster.name},
                                    {"global_batch", setting.workload.global_batch},
                                    {"seq_len", seq_len},
                                    {"dtype", std::string(DTypeName(setting.workload.dtype))},
                                    {"models", std::move(list)}});
  } else {
    PrintRows(context, setting, *rows);
  }
  const bool any = std::any_of(rows->begin(), rows->end(), [](const PresetFit& row) { return row.fits.ok(); });
  return {any ? 0 : EX_DATAERR, any ? "" : "no preset fits; of your own model: --model config.json"};
}

}  // namespace motley::client
