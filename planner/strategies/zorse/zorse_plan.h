// A choice of Zorse's search as a plan of the language.
#pragma once

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"
#include "planner/strategies/zorse/zorse_model.h"

namespace motley::planner {

// The choice fits (ZorseModel::Fit) with such shares.
Plan ToPlan(const Setting& setting, const ZorseModel& model, const ZorseChoice& choice, bool even_shards);
// The same stages with batches, shares and, where `recompute` leaves it open, recomputation by device of the exact splitter.
// RESOURCE_EXHAUSTED: a group does not fit as a whole into what the splitter may do.
absl::StatusOr<Plan> WithSplitGroups(const Setting& setting, const ZorseModel& model, const ZorseChoice& choice,
                                     RecomputePolicy recompute);

}  // namespace motley::planner
