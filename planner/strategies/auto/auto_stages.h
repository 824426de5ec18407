// Layered pipelines over given groups with everything uneven: batches, recomputation and shards inside every group by the exact
// solver, layers between groups by what the groups then need. No published system expresses these plans: Zorse's groups share
// evenly, Cephalo has one group.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/search/polish.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct StagesChoice {
  std::vector<std::vector<int>> groups;  // devices of each stage, in pipeline order
  int64_t ministages = 1;                // of every stage; one group: a layer each
  int zero_stage = 3;
  OffloadKinds offload;
};

// Layers start proportional to the groups' speeds; then, while it helps, one layer moves from the stage that takes longest (or
// lacks memory) to the one that takes it best. Stage costs are remembered. RESOURCE_EXHAUSTED: no split of the layers fits, or
// the budget is spent.
absl::StatusOr<Plan> PlanStages(const Setting& setting, const StagesChoice& choice, SearchBudget* budget);

}  // namespace motley::planner
