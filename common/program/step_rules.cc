#include "common/program/step_rules.h"

namespace motley {

absl::Status StepRules::NotStepped(int32_t unit, int32_t more_units) const {
  return check_.ForUnits(unit, more_units, [this](int32_t u) {
    return stepped_[u] < 0 ? absl::OkStatus() : check_.Error(absl::StrCat("unit ", u, " was stepped already"));
  });
}

absl::Status StepRules::Check(const ReduceScalars&) {
  if (scalars_ >= 0) return check_.Error("the scalars are reduced once");
  MOTLEY_RETURN_IF_ERROR(check_.Ordered(last_loss_, "reduce_scalars must wait for the last loss"));
  scalars_ = check_.at;
  return absl::OkStatus();
}

absl::Status StepRules::Check(const OptimizerStep& op) {
  if (all_ >= 0 || (by_name_ && op.first_unit == -1)) return check_.Error("the optimizer steps once");
  MOTLEY_RETURN_IF_ERROR(check_.Ordered(scalars_, "the optimizer must wait for reduce_scalars"));
  if (op.first_unit == -1) {
    if (scalars_ < 0) return check_.Error("reduce_scalars must come first");
    if (op.grad != -1) return check_.Error("a step of all units takes no sum from a buffer");
    all_ = check_.at;
    for (const int32_t unit : check_.program.units) MOTLEY_RETURN_IF_ERROR(StepUnit(op, unit));
    return absl::OkStatus();
  }
  by_name_ = true;
  if (op.grad != -1 && scalars_ >= 0)
    return check_.Error("behind reduce_scalars the sum must be elsewhere: it takes a buffer all step");
  return check_.ForUnits(op.first_unit, op.more_units, [&](int32_t unit) -> absl::Status {
    MOTLEY_RETURN_IF_ERROR(check_.HoldsArray(unit));
    if (stepped_[unit] >= 0) return check_.Error(absl::StrCat("unit ", unit, " was stepped already"));
    if (gradients_.ReducedAt(unit) < 0) return check_.Error(absl::StrCat("the gradients of unit ", unit, " were not reduced"));
    MOTLEY_RETURN_IF_ERROR(check_.Ordered(gradients_.ReducedAt(unit), "it must wait for the reduction of unit ", unit));
    return StepUnit(op, unit);
  });
}

absl::Status StepRules::StepUnit(const OptimizerStep& op, int32_t unit) {
  stepped_[unit] = check_.at;
  if (op.grad >= 0) MOTLEY_RETURN_IF_ERROR(gradients_.TakeSum(op.grad, unit));
  return copies_.Step(unit, op.slot);
}

absl::Status StepRules::CheckEnd() const {
  if (scalars_ < 0) return check_.EndError("reduce_scalars is missing");
  if (!check_.training()) return absl::OkStatus();
  MOTLEY_RETURN_IF_ERROR(gradients_.CheckEnd());
  if (all_ < 0 && !by_name_) return check_.EndError("optimizer_step is missing");
  for (const int32_t unit : check_.program.units) {
    if (stepped_[unit] < 0) return check_.EndError(absl::StrCat("unit ", unit, " is never stepped"));
  }
  return copies_.CheckEnd();
}

}  // namespace motley
