#include "common/program/step_rules.h"

namespace motley {

StepRules::StepRules(const ProgramCheck& check, const GradientRules& gradients)
    : check_(check), gradients_(gradients), stepped_(check.program.num_units, -1) {
  for (std::vector<Copied>& units : copied_) units.resize(check.program.num_units);
}

absl::Status StepRules::NotStepped(int32_t unit, int32_t more_units) const {
  return check_.ForUnits(unit, more_units, [this](int32_t u) {
    return stepped_[u] < 0 ? absl::OkStatus() : check_.Error(absl::StrCat("unit ", u, " was stepped already"));
  });
}

absl::Status StepRules::ParametersThere(int32_t unit) const {
  if (!InHost(State::kParameters, unit)) return absl::OkStatus();
  const int prefetch = CopiedOf(State::kParameters, unit).prefetch;
  if (prefetch < 0)
    return check_.Error(absl::StrCat("the parameters of unit ", unit, " are in host memory; prefetch them first"));
  return check_.Ordered(prefetch, "it must wait for the prefetch of the parameters of unit ", unit);
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
    all_ = check_.at;
    for (const int32_t unit : check_.program.units) MOTLEY_RETURN_IF_ERROR(StepUnit(unit));
    return absl::OkStatus();
  }
  by_name_ = true;
  return check_.ForUnits(op.first_unit, op.more_units, [this](int32_t unit) -> absl::Status {
    MOTLEY_RETURN_IF_ERROR(check_.HoldsArray(unit));
    if (stepped_[unit] >= 0) return check_.Error(absl::StrCat("unit ", unit, " was stepped already"));
    if (gradients_.ReducedAt(unit) < 0) return check_.Error(absl::StrCat("the gradients of unit ", unit, " were not reduced"));
    MOTLEY_RETURN_IF_ERROR(check_.Ordered(gradients_.ReducedAt(unit), "it must wait for the reduction of unit ", unit));
    return StepUnit(unit);
  });
}

absl::Status StepRules::StepUnit(int32_t unit) {
  stepped_[unit] = check_.at;
  if (!InHost(State::kMoments, unit)) return absl::OkStatus();
  const int prefetch = CopiedOf(State::kMoments, unit).prefetch;
  if (prefetch < 0) return check_.Error(absl::StrCat("the moments of unit ", unit, " are in host memory; prefetch them first"));
  return check_.Ordered(prefetch, "it must wait for the prefetch of the moments of unit ", unit);
}

absl::Status StepRules::Check(const PrefetchState& op) {
  return check_.ForUnits(op.unit, op.more_units, [&](int32_t unit) -> absl::Status {
    MOTLEY_RETURN_IF_ERROR(check_.HoldsArray(unit));
    if (stepped_[unit] >= 0) return check_.Error(absl::StrCat("unit ", unit, " was stepped already"));
    CopiedOf(op.of, unit).prefetch = check_.at;
    return absl::OkStatus();
  });
}

absl::Status StepRules::Check(const OffloadState& op) {
  return check_.ForUnits(op.unit, op.more_units, [&](int32_t unit) -> absl::Status {
    MOTLEY_RETURN_IF_ERROR(check_.HoldsArray(unit));
    if (!InHost(op.of, unit))
      return check_.Error(absl::StrCat("unit ", unit, " has no place in host memory: nothing prefetches it"));
    if (stepped_[unit] < 0) return check_.Error(absl::StrCat("unit ", unit, " was not stepped: host memory has the same"));
    if (CopiedOf(op.of, unit).offload >= 0) return check_.Error(absl::StrCat("unit ", unit, " was offloaded already"));
    CopiedOf(op.of, unit).offload = check_.at;
    return check_.Ordered(stepped_[unit], "it must wait for the step of unit ", unit);
  });
}

absl::Status StepRules::CheckEnd() const {
  if (scalars_ < 0) return check_.EndError("reduce_scalars is missing");
  if (!check_.training()) return absl::OkStatus();
  MOTLEY_RETURN_IF_ERROR(gradients_.CheckEnd());
  if (all_ < 0 && !by_name_) return check_.EndError("optimizer_step is missing");
  for (const int32_t unit : check_.program.units) {
    if (stepped_[unit] < 0) return check_.EndError(absl::StrCat("unit ", unit, " is never stepped"));
  }
  for (const State state : {State::kParameters, State::kMoments}) {
    for (int32_t unit = 0; unit < check_.program.num_units; ++unit) {
      if (!InHost(state, unit) || stepped_[unit] < 0 || CopiedOf(state, unit).offload >= 0) continue;
      return check_.EndError(absl::StrCat("the stepped ", std::string(WordsOf(state)[static_cast<size_t>(state)]), " of unit ",
                                          unit, " never come to host memory"));
    }
  }
  return absl::OkStatus();
}

}  // namespace motley
