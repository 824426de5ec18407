// How tensor-parallel units are cut for the engine: their ranks' slices of the model (common/model/model_slice.h). What searches
// price may be cut anywhere; what runs is cut between parts.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/model.h"
#include "common/model/model_slice.h"
#include "planner/plan/plan.h"

namespace motley::planner {

bool IsTensorParallel(const StagePlan& stage);

// By rank of the stage; a rank alone has all. UNIMPLEMENTED: a share cuts a part (SlicesOf names the nearest), or the model is
// too small.
absl::StatusOr<std::vector<ModelSlice>> SlicesOfStage(const ModelShape& model, const StagePlan& stage);

// By rank of the plan. Errors of SlicesOfStage, which name the stage.
absl::StatusOr<std::vector<ModelSlice>> SlicesOfRanks(const ModelShape& model, const Plan& plan);

// Shares that are whole parts but for rounding become these exactly; others stay.
void SnapShares(const ModelShape& model, Plan* plan);

// Elements of each unit of the model, as a slice has them.
struct SliceElements {
  std::vector<int64_t> all, divided;  // the first so many are of tensors that are divided
};
SliceElements ElementsOf(const ModelShape& model, const ModelSlice& slice);

// What plans with tensor-parallel units must be beside the language so that the engine runs them. Errors of SlicesOfRanks;
// UNIMPLEMENTED: an operator of which recomputing would need a sum; INVALID_ARGUMENT: a rank owns of tensors that it has no part
// of. Names the part of the plan, which has passed Validate.
absl::Status CheckTensorParallel(const Plan& plan, const ModelShape& model);

}  // namespace motley::planner
