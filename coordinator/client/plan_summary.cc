#include "coordinator/client/plan_summary.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "planner/strategies/catalog.h"
#include "planner/util/quantity_text.h"

namespace motley::client {
namespace {

constexpr char kFound[] = "found from ", kSpent[] = "found with ";

// "found from zorse (before climbing even led)", as the search notes its start, for people who do not know how it searches.
std::string SearchSentence(const std::string& note) {
  absl::string_view origin = note;
  absl::ConsumePrefix(&origin, kFound);
  const size_t end = origin.find(" (before climbing ");
  absl::string_view led = end == origin.npos ? absl::string_view() : origin.substr(end);
  std::string text = absl::StrCat("the search climbed from '", origin.substr(0, end), "'");
  if (absl::ConsumePrefix(&led, " (before climbing ") && absl::ConsumeSuffix(&led, " led)")) {
    absl::StrAppend(&text, "; before that '", led, "' was the fastest");
  }
  return text;
}

std::string RunsHereText(const planner::RunsHere& runs) {
  if (runs.status.ok()) return "yes";
  return absl::StrCat("no (", WhyNotHere(runs), runs.another ? "); --runnable plans what does" : ")");
}

// What people must know who compare it with other plans: whose limits it keeps to, and whose state its seconds and bytes are of.
std::string FidelityText(const planner::PlanRequest& request, const std::string& strategy) {
  if (request.fidelity == planner::Fidelity::kTuned) return "";
  const absl::StatusOr<planner::CatalogEntry> entry = planner::FindInCatalog(strategy);
  const bool replicas = request.keeps_replicas();
  if (entry.ok() && entry->of_paper) {
    return absl::StrCat(strategy, " as published (its own limits, ",
                        replicas ? "and the state that the paper's system keeps" : "with the state that the engine keeps", "): ");
  }
  return absl::StrCat(strategy, " (no paper's system", replicas ? "; state as papers' systems keep it" : "", "): ");
}

}  // namespace

std::string SummaryText(const planner::Plan& plan, const planner::LowerBound& bound, const planner::RunsHere& runs,
                        const planner::PlanRequest& request) {
  const planner::PlanPrediction& p = plan.predicted;
  std::string out = absl::StrFormat("%s%s a step, %.0f tokens/s", FidelityText(request, plan.strategy),
                                    planner::SecondsText(p.step_seconds), p.tokens_per_second);
  if (p.tokens_per_dollar > 0) absl::StrAppend(&out, ", ", planner::CountText(p.tokens_per_dollar), " tokens/$");
  if (p.low_seconds > 0 && p.high_seconds > p.low_seconds) {
    absl::StrAppend(&out, "; between ", planner::SecondsText(p.low_seconds), " and ", planner::SecondsText(p.high_seconds),
                    p.estimated ? " in nine cases of ten, as it rests on estimates" : "");
  } else if (p.estimated) {
    absl::StrAppend(&out, "; rests on estimates");
  }
  absl::StrAppend(&out, "\nbound by ", p.binding_constraint);
  absl::StrAppend(&out, "; ");
  if (p.mfu > 0) absl::StrAppendFormat(&out, "MFU %.1f %%, HFU %.1f %%, ", 100 * p.mfu, 100 * p.hfu);
  absl::StrAppendFormat(&out, "idle %.1f %%", 100 * p.idle_share);
  if (bound.seconds > 0) {
    absl::StrAppendFormat(&out, "\n%.1f %% above the bound: no plan can be faster than %s (%s)", 100 * p.gap(),
                          planner::SecondsText(bound.seconds), bound.because);
  }
  return absl::StrCat(out, "\nruns here: ", RunsHereText(runs), "\n");
}

std::string WhyNotHere(const planner::RunsHere& runs) {
  const std::string message(runs.status.message());
  return message.starts_with("plan: ") ? message.substr(6) : message;  // without the word that names the document
}

std::string NotesText(const planner::Plan& plan, bool verbose) {
  std::string out;
  for (const std::string& note : plan.predicted.notes) {
    const bool origin = note.starts_with(kFound), of_search = origin || note.starts_with(kSpent);
    if (of_search && !verbose) continue;
    absl::StrAppend(&out, "note: ", origin ? SearchSentence(note) : note, "\n");
  }
  return out;
}

std::string LegendText() {
  return "MFU: the model's FLOPs, HFU: recomputed ones too, as a part of the peak of the plan's devices, where all have one; "
         "idle: of the compute lanes' time; gap: over the bound; in flight: microbatches that a stage keeps at once\n";
}

}  // namespace motley::client
