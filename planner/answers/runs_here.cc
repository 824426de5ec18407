#include "planner/answers/runs_here.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/count.h"
#include "planner/pricing/price.h"
#include "planner/strategies/frugal_plan.h"

namespace motley::planner {
namespace {

constexpr int64_t kMostNodes = 1'000'000;  // about a second

// The first ones: of a large cluster there are many, and each tells the same.
std::string SomeOf(const std::vector<std::string>& reasons) {
  constexpr size_t kMost = 3;
  const size_t named = std::min(kMost, reasons.size()), more = reasons.size() - named;
  const std::string some = absl::StrJoin(reasons.begin(), reasons.begin() + static_cast<std::ptrdiff_t>(named), "; ");
  return more == 0 ? some : absl::StrCat(some, "; and ", Count(more, "more group"), " of devices");
}

RunsHere AsIs(const Setting& setting, const Plan& plan) {
  if (plan.predicted.as_run) return {absl::OkStatus(), plan.predicted.step_seconds};
  if (absl::Status runs = StateRunsHere(setting.workload); !runs.ok()) return {std::move(runs), 0};
  if (absl::Status runs = ValidateForEngine(plan, setting.workload.model); !runs.ok()) return {std::move(runs), 0};
  const Setting as_run = setting.AsRun();
  if (plan.global_batch != setting.workload.global_batch || PriceNodes(as_run, plan) > kMostNodes) return {};
  const absl::StatusOr<Evaluation> priced = Price(as_run, plan);
  if (!priced.ok()) return {priced.status(), 0};
  if (!priced->does_not_fit.empty()) {
    return {absl::ResourceExhaustedError(absl::StrCat("with the state that the engine keeps, ", SomeOf(priced->does_not_fit))),
            0};
  }
  return {absl::OkStatus(), priced->plan.predicted.step_seconds};
}

}  // namespace

RunsHere FindRunsHere(const Setting& setting, const Plan& plan) {
  RunsHere runs = AsIs(setting, plan);
  if (!runs.status.ok() && StateRunsHere(setting.workload).ok()) runs.another = FindFrugal(setting.AsRun()).fits.ok();
  return runs;
}

}  // namespace motley::planner
