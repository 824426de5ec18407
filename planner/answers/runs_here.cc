#include "planner/answers/runs_here.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/count.h"
#include "common/base/status_macros.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/price.h"
#include "planner/strategies/frugal_plan.h"

namespace motley::planner {
namespace {

// The first ones: of a large cluster there are many, and each tells the same.
std::string SomeOf(const std::vector<std::string>& reasons) {
  constexpr size_t kMost = 3;
  const size_t named = std::min(kMost, reasons.size()), more = reasons.size() - named;
  const std::string some = absl::StrJoin(reasons.begin(), reasons.begin() + static_cast<std::ptrdiff_t>(named), "; ");
  return more == 0 ? some : absl::StrCat(some, "; and ", Count(more, "more group"), " of devices");
}

bool FitsAsPriced(const Setting& setting, const Plan& plan) {
  bool fits = true;
  ForEachRank(plan, [&](const RankPlan& rank) {
    const int device = setting.FindDevice(rank.device);
    fits &= device >= 0 && rank.predicted.peak_bytes <= setting.UsableBytes(device);
  });
  return fits;
}

absl::Status AsIs(const Setting& setting, const Plan& plan) {
  MOTLEY_RETURN_IF_ERROR(StateRunsHere(setting.workload));
  MOTLEY_RETURN_IF_ERROR(ValidateForEngine(plan, setting.workload.model));
  const bool as_engine = setting.workload.state == StateKeeping::kEngine;
  if (plan.global_batch != setting.workload.global_batch || (as_engine && FitsAsPriced(setting, plan))) return absl::OkStatus();
  MOTLEY_ASSIGN_OR_RETURN(const Evaluation priced, Price(setting.AsRun(), plan));
  if (priced.does_not_fit.empty()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("with the state that the engine keeps, ", SomeOf(priced.does_not_fit)));
}

}  // namespace

RunsHere FindRunsHere(const Setting& setting, const Plan& plan) {
  RunsHere runs = {AsIs(setting, plan)};
  if (!runs.status.ok() && StateRunsHere(setting.workload).ok()) runs.another = FindFrugal(setting.AsRun()).fits.ok();
  return runs;
}

}  // namespace motley::planner
