#include "common/program/copy_rules.h"

namespace motley {

// ---- slots ----

absl::Status CopyRules::SlotFree(int32_t slot) const {
  MOTLEY_RETURN_IF_ERROR(check_.InRange("slot", slot, check_.program.slots));
  const Slot& in = slots_[static_cast<size_t>(slot)];
  for (int32_t unit = in.unit; in.unit >= 0 && unit <= in.unit + in.more_units; ++unit) {
    if (in.state) {  // the copy back is on this lane
      if (state_[unit].offload >= 0) continue;
      return check_.Error(absl::StrCat("slot ", slot, " holds the optimizer of unit ", unit, ", which is not offloaded yet"));
    }
    for (int32_t m = in.microbatch; m <= in.microbatch + in.more_microbatches; ++m) {
      const int used = microbatches_.At(unit, m).input.done;
      if (used < 0) {
        return check_.Error(absl::StrCat("slot ", slot, " holds the input of unit ", unit, ", which nothing used yet"));
      }
      MOTLEY_RETURN_IF_ERROR(check_.Ordered(used, "it must wait for the backward of unit ", unit, ", which uses slot ", slot));
    }
  }
  return absl::OkStatus();
}

// ---- inputs of units ----

absl::Status CopyRules::Check(const OffloadActivation& op) {
  return check_.ForCells(op, false, [&](int32_t unit, int32_t microbatch) -> absl::Status {
    UnitWork& work = microbatches_.At(unit, microbatch);
    if (unit == 0) return check_.Error("the input of unit 0 are tokens, which stay");
    if (work.forward.done < 0) return check_.Error(absl::StrCat("microbatch ", microbatch, " must run unit ", unit, " first"));
    if (work.offload >= 0) return check_.Error(absl::StrCat("the input of unit ", unit, " was offloaded already"));
    if (work.input.begun() || work.recompute.begun()) {
      return check_.Error(absl::StrCat("the input of unit ", unit, " was used by its backward already"));
    }
    work.offload = check_.at;
    return check_.Ordered(work.forward.done, "it must wait for the forward that uses what it moves");
  });
}

absl::Status CopyRules::Check(const PrefetchActivation& op) {
  MOTLEY_RETURN_IF_ERROR(SlotFree(op.slot));
  slots_[static_cast<size_t>(op.slot)] = {op.unit, op.more_units, false, op.microbatch, op.more_microbatches};
  return check_.ForCells(op, false, [&](int32_t unit, int32_t microbatch) -> absl::Status {
    UnitWork& work = microbatches_.At(unit, microbatch);
    if (work.offload < 0) return check_.Error(absl::StrCat("the input of unit ", unit, " is not in host memory"));
    if (work.prefetch >= 0) return check_.Error(absl::StrCat("the input of unit ", unit, " was prefetched already"));
    work.prefetch = check_.at;
    return absl::OkStatus();  // behind its offload: on the same lane
  });
}

// ---- state ----

absl::Status CopyRules::Check(const OffloadGradients& op) {
  return check_.ForUnits(op.unit, op.more_units, [&](int32_t unit) -> absl::Status {
    MOTLEY_RETURN_IF_ERROR(check_.HoldsArray(unit));
    if (state_[unit].gradients >= 0) return check_.Error(absl::StrCat("the gradients of unit ", unit, " were offloaded already"));
    state_[unit].gradients = check_.at;
    return gradients_.TakeSum(op.grad, unit);
  });
}

absl::Status CopyRules::Check(const PrefetchOptimizer& op) {
  MOTLEY_RETURN_IF_ERROR(SlotFree(op.slot));
  slots_[static_cast<size_t>(op.slot)] = {op.unit, op.more_units, true};
  return check_.ForUnits(op.unit, op.more_units, [&](int32_t unit) -> absl::Status {
    MOTLEY_RETURN_IF_ERROR(check_.HoldsArray(unit));
    UnitState& state = state_[unit];
    if (state.step >= 0) return check_.Error(absl::StrCat("unit ", unit, " was stepped already"));
    if (state.prefetch >= 0) return check_.Error(absl::StrCat("the optimizer of unit ", unit, " was prefetched already"));
    if (check_.program.offloads.gradients && state.gradients < 0) {
      return check_.Error(absl::StrCat("the gradients of unit ", unit, " are not in host memory yet"));
    }
    state.prefetch = check_.at;
    state.slot = op.slot;
    return absl::OkStatus();
  });
}

absl::Status CopyRules::Step(int32_t unit, int32_t slot) {
  UnitState& state = state_[unit];
  state.step = check_.at;
  if (!check_.program.offloads.takes_state()) {
    return slot == -1 ? absl::OkStatus() : check_.Error("nothing of the state waits in host memory: it must name no slot");
  }
  if (state.prefetch < 0) {
    return check_.Error(absl::StrCat("the optimizer of unit ", unit, " is in host memory; prefetch it first"));
  }
  if (slot != state.slot) {
    return check_.Error(absl::StrCat("the optimizer of unit ", unit, " is in slot ", state.slot, ", not ", slot));
  }
  return check_.Ordered(state.prefetch, "it must wait for the prefetch of the optimizer of unit ", unit);
}

absl::Status CopyRules::Check(const OffloadOptimizer& op) {
  return check_.ForUnits(op.unit, op.more_units, [&](int32_t unit) -> absl::Status {
    MOTLEY_RETURN_IF_ERROR(check_.HoldsArray(unit));
    UnitState& state = state_[unit];
    if (state.step < 0) return check_.Error(absl::StrCat("unit ", unit, " was not stepped: host memory has the same"));
    if (state.offload >= 0) return check_.Error(absl::StrCat("the optimizer of unit ", unit, " was offloaded already"));
    if (op.slot != state.slot) {
      return check_.Error(absl::StrCat("the optimizer of unit ", unit, " is in slot ", state.slot, ", not ", op.slot));
    }
    state.offload = check_.at;
    return check_.Ordered(state.step, "it must wait for the step of unit ", unit);
  });
}

absl::Status CopyRules::CheckEnd() const {
  if (!check_.program.offloads.takes_state()) return absl::OkStatus();
  for (int32_t unit = 0; unit < check_.program.num_units; ++unit) {
    if (state_[unit].step < 0 || state_[unit].offload >= 0) continue;
    return check_.EndError(absl::StrCat("the stepped optimizer of unit ", unit, " never comes to host memory"));
  }
  return absl::OkStatus();
}

}  // namespace motley
