#include "planner/pricing/price.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "planner/lowering/program_graph.h"
#include "planner/lowering/program_writer.h"
#include "planner/plan/ownership.h"
#include "planner/plan/placement.h"

namespace motley::planner {

absl::StatusOr<Evaluation> Price(const Setting& setting, Plan plan) {
  MOTLEY_ASSIGN_OR_RETURN(Evaluation evaluation, Evaluate(setting, std::move(plan)));
  MOTLEY_RETURN_IF_ERROR(PriceByPrograms(setting, &evaluation));
  return evaluation;
}

absl::Status PriceByPrograms(const Setting& setting, Evaluation* evaluation) {
  if (!setting.request.runnable || !ValidateForEngine(evaluation->plan, setting.workload.model).ok()) return absl::OkStatus();
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<Program> programs, LowerTraining(setting, evaluation->plan));
  const std::vector<UnitPlacement> placement = SteppersOf(evaluation->plan, UnitElements(setting.costs.layout()));
  MOTLEY_ASSIGN_OR_RETURN(ProgramGraph priced, GraphOfPrograms(setting, evaluation->plan, programs, placement));
  return Retime(std::move(priced.graph), evaluation);
}

}  // namespace motley::planner
