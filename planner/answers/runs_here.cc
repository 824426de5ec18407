#include "planner/answers/runs_here.h"

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/pricing/price.h"

namespace motley::planner {
namespace {

constexpr int64_t kMostComputed = 400'000;  // passes of a microbatch through a unit, of all ranks; about a second

int64_t Computed(const Plan& plan) {
  int64_t computed = 0;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (const StagePlan& stage : pipeline.stages) {
      int64_t layers = 0, microbatches = 0;
      for (const LayerRange& range : stage.ministages) layers += range.last - range.first + 1;
      for (const UnitPlan& unit : stage.units) microbatches += static_cast<int64_t>(unit.microbatches.size());
      computed += layers * microbatches;
    }
  }
  return computed;
}

}  // namespace

RunsHere FindRunsHere(const Setting& setting, const Plan& plan) {
  if (plan.predicted.as_run) return {absl::OkStatus(), plan.predicted.step_seconds};
  if (absl::Status runs = ValidateForEngine(plan, setting.workload.model); !runs.ok()) return {std::move(runs), 0};
  if (plan.global_batch != setting.workload.global_batch || Computed(plan) > kMostComputed) return {};
  const absl::StatusOr<Evaluation> priced = Price(setting.AsRun(), plan);
  if (!priced.ok()) return {priced.status(), 0};
  if (!priced->does_not_fit.empty()) {
    return {absl::ResourceExhaustedError(
                absl::StrCat("with the state that the engine keeps, ", absl::StrJoin(priced->does_not_fit, "; "))),
            0};
  }
  return {absl::OkStatus(), priced->plan.predicted.step_seconds};
}

}  // namespace motley::planner
