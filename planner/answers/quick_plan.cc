#include "planner/answers/quick_plan.h"

#include <algorithm>
#include <iterator>

#include "absl/status/statusor.h"
#include "planner/answers/plan_answer.h"
#include "planner/answers/runs_here.h"
#include "planner/strategies/catalog.h"

namespace motley::planner {
namespace {

constexpr const char* kQuickStrategies[] = {"cephalo", "poplar", "zorse", "hexiscale"};
constexpr size_t kWithoutOffload = 1;  // of them: without offload and wide units the first fits nearly wherever others do

}  // namespace

std::vector<std::string> QuickStrategies(const PlanRequest& request) {
  if (request.strategy != "auto") return {request.strategy};
  std::vector<std::string> strategies(std::begin(kQuickStrategies), std::end(kQuickStrategies));
  if (request.runnable && request.from_job) strategies.resize(kWithoutOffload);
  return strategies;
}

std::optional<QuickPlan> FindQuickPlan(Setting& setting, const std::vector<std::string>& strategies,
                                       const std::function<bool(PlanRequest*)>& out_of_time) {
  std::optional<QuickPlan> best;
  for (const std::string& name : strategies) {
    if (out_of_time && out_of_time(&setting.request)) break;
    const absl::StatusOr<CatalogEntry> strategy = FindInCatalog(name);
    if (!strategy.ok()) continue;
    const absl::StatusOr<Evaluation> evaluation = PlanAndEvaluate(setting, *strategy);
    if (!evaluation.ok()) continue;
    const double seconds = evaluation->plan.predicted.step_seconds;
    const RunsHere runs = FindRunsHere(setting, evaluation->plan);
    if (!best) best = QuickPlan{seconds, 0};
    best->step_seconds = std::min(best->step_seconds, seconds);
    if (runs.status.ok() && (best->runs_here_seconds == 0 || seconds < best->runs_here_seconds)) {
      best->runs_here_seconds = seconds;
    }
  }
  return best;
}

}  // namespace motley::planner
