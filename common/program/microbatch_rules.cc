#include "common/program/microbatch_rules.h"

namespace motley {
namespace {

bool IsSecond(UnitSegment segment) { return segment == UnitSegment::kMlp || segment == UnitSegment::kLoss; }

}  // namespace

absl::Status MicrobatchRules::AdvanceSegment(int32_t unit, int32_t more_units, UnitSegment segment, bool backward,
                                             UnitPass& pass) const {
  if (more_units > 0) return check_.Error("a segment is of one unit");
  const bool of_layer = segment == UnitSegment::kAttention || segment == UnitSegment::kMlp;
  if (of_layer ? !check_.IsLayer(unit) : unit != check_.head()) {
    return check_.Error(
        absl::StrCat("unit ", unit, " has no such segment; a layer has attention and mlp, the head logits and loss"));
  }
  if (IsSecond(segment) == backward) {
    if (pass.half >= 0) return check_.Error("this segment ran already");
    pass.half = check_.at;
    return absl::OkStatus();
  }
  if (pass.half < 0) return check_.Error("the other segment comes first");
  MOTLEY_RETURN_IF_ERROR(check_.Ordered(pass.half_sum, "it must wait for the sum behind the other segment"));
  pass.done = check_.at;
  return absl::OkStatus();
}

absl::Status MicrobatchRules::SameTp(int32_t tp_group, const UnitWork& work) const {
  if (tp_group == work.tp_group) return absl::OkStatus();
  return check_.Error("it must name the tp group of its forward");
}

absl::Status MicrobatchRules::RunForward(const Forward& f, int32_t unit, int32_t microbatch) {
  UnitWork& work = At(unit, microbatch);
  if (check_.training() == (f.keep == Keep::kNothing)) {
    return check_.Error(check_.training() ? "a training program keeps all or the boundary"
                                          : "an evaluation program keeps nothing");
  }
  if (f.operators != 0 && f.keep != Keep::kBoundary) return check_.Error("only keep=boundary is of some operators");
  if (f.operators != 0 && !check_.IsLayer(unit)) return check_.Error("operators are those of a layer");
  if (work.forward.half >= 0 && (work.keep != f.keep || work.operators != f.operators)) {
    return check_.Error("both segments must keep the same");
  }
  work.keep = f.keep;
  work.operators = f.operators;
  work.tp_group = f.tp_group;
  return Advance(f, false, work.forward);
}

absl::Status MicrobatchRules::RunRecompute(const Recompute& r, int32_t unit, int32_t microbatch) {
  UnitWork& work = At(unit, microbatch);
  if (work.forward.done < 0 || work.keep != Keep::kBoundary) {
    return check_.Error("recompute needs a forward that kept the boundary");
  }
  if (work.recompute.done >= 0) return check_.Error(absl::StrCat("microbatch ", microbatch, " was recomputed already"));
  if (work.input.begun()) return check_.Error("recompute must come before its backward");
  if (r.operators != work.operators) return check_.Error("it must name the operators of its forward");
  MOTLEY_RETURN_IF_ERROR(SameTp(r.tp_group, work));
  MOTLEY_RETURN_IF_ERROR(InputThere(unit, microbatch));
  return Advance(r, false, work.recompute);
}

absl::Status MicrobatchRules::BeginBackward(int32_t unit, int32_t microbatch) const {
  const UnitWork& work = At(unit, microbatch);
  if (work.keep == Keep::kBoundary && work.recompute.done < 0) {
    return check_.Error("only the boundary was kept; recompute first");
  }
  MOTLEY_RETURN_IF_ERROR(check_.Ordered(work.recompute.half_sum, "it must wait for the sum behind the recomputation"));
  return InputThere(unit, microbatch);
}

absl::Status MicrobatchRules::RunWeight(const BackwardWeight& b, int32_t unit, int32_t microbatch) {
  UnitWork& work = At(unit, microbatch);
  if (work.weight.done >= 0) {
    return check_.Error(absl::StrCat("unit ", unit, " already ran microbatch ", microbatch, "'s backward of the weights"));
  }
  const bool first_segment = b.segment != UnitSegment::kWhole && IsSecond(b.segment);
  if (first_segment ? !work.input.begun() : work.input.done < 0) {
    return check_.Error(absl::StrCat("microbatch ", microbatch, " must run unit ", unit, "'s backward_input first"));
  }
  return Advance(b, true, work.weight);
}

absl::Status MicrobatchRules::InputThere(int32_t unit, int32_t microbatch) const {
  const UnitWork& work = At(unit, microbatch);
  if (work.offload < 0) return absl::OkStatus();
  if (work.prefetch < 0) return check_.Error(absl::StrCat("the input of unit ", unit, " is in host memory; prefetch it first"));
  return check_.Ordered(work.prefetch, "it must wait for the prefetch of the input of unit ", unit);
}

// ---- sums ----

absl::Status MicrobatchRules::Sum(UnitPass& pass, bool half, bool used) {
  const int made = half ? pass.half : pass.done;
  int& sum = half ? pass.half_sum : pass.done_sum;
  if (made < 0) return check_.Error("what it sums was not made yet");
  if (sum >= 0) return check_.Error("it was summed already");
  if (used) return check_.Error("what it sums was used already");
  MOTLEY_RETURN_IF_ERROR(check_.Ordered(made, "it must wait for what makes its terms"));
  sum = check_.at;
  return absl::OkStatus();
}

absl::Status MicrobatchRules::Check(const AllReduceActivation& op) {
  MOTLEY_RETURN_IF_ERROR(check_.Holds(op.unit));
  MOTLEY_RETURN_IF_ERROR(check_.InRange("microbatch", op.microbatch, check_.program.microbatches));
  MOTLEY_RETURN_IF_ERROR(check_.InGroup(op.group));
  UnitWork& work = At(op.unit, op.microbatch);
  if (work.tp_group != -1) return check_.Error(absl::StrCat("the sums of unit ", op.unit, " are inside its instructions"));
  if (work.sum_group != -1 && work.sum_group != op.group) return check_.Error("the sums of a unit are of one group");
  work.sum_group = op.group;
  if (op.of == Exchanged::kRows && (op.unit != check_.head() || op.segment != UnitSegment::kLogits)) {
    return check_.Error("rows are of the head's logits");
  }
  if (op.of == Exchanged::kActivation && op.unit == check_.head()) return check_.Error("the head's output is a number");
  if (op.of == Exchanged::kGradient && op.unit == 0) return check_.Error("the input of unit 0 has no gradient");
  const bool gradient = op.of == Exchanged::kGradient;
  UnitPass& pass = gradient ? work.input : work.recompute.begun() ? work.recompute : work.forward;
  if (op.segment == UnitSegment::kWhole || IsSecond(op.segment) != gradient) {
    if (op.segment != UnitSegment::kWhole && pass.done >= 0 && pass.half < 0) return check_.Error("the unit ran whole");
    const int32_t next = gradient ? op.unit - 1 : op.unit + 1;
    const bool used = check_.Held(next) && (gradient ? At(next, op.microbatch).input : At(next, op.microbatch).forward).begun();
    return Sum(pass, false, used && &pass != &work.recompute);
  }
  return Sum(pass, true, pass.done >= 0);
}

absl::Status MicrobatchRules::CheckSums(int32_t unit, int32_t microbatch) const {
  const UnitWork& work = At(unit, microbatch);
  if (work.sum_group == -1) return absl::OkStatus();
  const bool head = unit == check_.head();
  for (const UnitPass* pass : {&work.forward, &work.recompute}) {
    if (pass->half >= 0 && pass->half_sum < 0) {
      return check_.EndError(
          absl::StrCat("what microbatch ", microbatch, " makes between unit ", unit, "'s segments is never summed"));
    }
  }
  if (!head && work.forward.done_sum < 0) {
    return check_.EndError(absl::StrCat("unit ", unit, "'s output of microbatch ", microbatch, " is never summed"));
  }
  if (unit == 0 || work.input.done < 0) return absl::OkStatus();
  if (work.input.done_sum < 0 || (!head && work.input.half >= 0 && work.input.half_sum < 0)) {
    return check_.EndError(absl::StrCat("unit ", unit, "'s gradients of microbatch ", microbatch, " are never summed"));
  }
  return absl::OkStatus();
}

bool MicrobatchRules::Sends(int32_t unit, int32_t microbatch) const {
  const UnitWork& work = At(unit, microbatch);
  const int32_t group = work.tp_group != -1 ? work.tp_group : work.sum_group;
  return group == -1 || check_.program.groups[group].front() == check_.program.rank;
}

}  // namespace motley
