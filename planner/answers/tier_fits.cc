#include "planner/answers/tier_fits.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "planner/answers/plan_answer.h"
#include "planner/answers/quick_plan.h"
#include "planner/util/lack_of_memory.h"

namespace motley::planner {
namespace {

TierFit Fitting(const Setting& setting, const Plan& plan) {
  TierFit fit;
  fit.strategy = plan.strategy;
  fit.offloads = OffloadsOf(plan);
  fit.hosts = HostSharesOf(setting, plan);
  fit.step_seconds = plan.predicted.step_seconds;
  fit.tokens_per_second = plan.predicted.tokens_per_second;
  fit.runs_here = FindRunsHere(setting, plan).status.ok();
  return fit;
}

// The fastest of the quick strategies; where none of them has a plan, the request's own.
absl::StatusOr<Plan> Fastest(const Setting& setting) {
  Setting quick = setting;
  quick.request.budget_nodes = std::min(quick.request.budget_nodes, kTryBudget);
  absl::StatusOr<Plan> best = absl::NotFoundError("no strategy was asked");
  const auto consider = [&best](const Setting& in, const std::string& name) {
    const absl::StatusOr<CatalogEntry> strategy = FindInCatalog(name);
    absl::StatusOr<Evaluation> found = strategy.ok() ? PlanAndEvaluate(in, *strategy) : strategy.status();
    if (!found.ok()) {
      if (!best.ok()) best = found.status();
    } else if (!best.ok() || found->plan.predicted.step_seconds < best->predicted.step_seconds) {
      best = std::move(found->plan);
    }
  };
  if (setting.request.strategy == "auto") {
    for (const std::string& name : QuickStrategies(setting.request)) consider(quick, name);
  }
  if (!best.ok()) consider(setting, setting.request.strategy);
  return best;
}

TierFit Found(const Setting& setting) {
  const absl::StatusOr<Plan> plan = Fastest(setting);
  if (plan.ok()) return Fitting(setting, *plan);
  TierFit fit;
  fit.fits = plan.status();
  fit.lacking_bytes = LackingBytes(plan.status()).value_or(0);
  return fit;
}

std::string WhyNoOffload(const Setting& setting) {
  if (!setting.request.offload.any()) {
    return absl::StrCat(setting.request.from_job ? "planner.offload = never" : "--offload never",
                        " keeps everything on the cards");
  }
  if (!setting.limits().offload.any()) {
    return absl::StrCat("the engine does not run plans that offload ", InWords(setting.request.offload));
  }
  return setting.request.from_job ? "no node offers host memory (worker.host_memory_bytes)"
                                  : "no node offers host memory (host_memory_gib in the cluster's file)";
}

}  // namespace

TierFits FindTierFits(const Setting& setting) {
  Setting alone = setting;
  alone.request.offload = OffloadKinds::None();
  TierFits both{.on_cards = Found(alone)};
  if (!setting.MayOffload().any()) {
    both.no_offload_because = WhyNoOffload(setting);
    return both;
  }
  both.with_offload = Found(setting);
  const TierFit& cards = both.on_cards;
  TierFit& offload = *both.with_offload;
  if (cards.fits.ok() && (!offload.fits.ok() || offload.step_seconds > cards.step_seconds)) offload = cards;
  return both;
}

}  // namespace motley::planner
