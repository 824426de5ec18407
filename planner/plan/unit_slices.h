// How tensor-parallel units are cut: their ranks' slices of the model (common/model/model_slice.h), which lie between parts.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/model.h"
#include "common/model/model_slice.h"
#include "planner/plan/plan.h"

namespace motley::planner {

bool IsTensorParallel(const StagePlan& stage);

// By rank of the stage; a rank alone has all. INVALID_ARGUMENT: a share cuts a part (SlicesOf names the nearest), or the model is
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

// The rules of tensor-parallel units. Errors of SlicesOfRanks; INVALID_ARGUMENT: an operator of which recomputing would need a
// sum, or a rank owns of tensors that it has no part of. Names the part of the plan, whose shape is that of the language.
absl::Status CheckTensorParallel(const Plan& plan, const ModelShape& model);

}  // namespace motley::planner
