// The local rules of instructions (docs/inside/program.md lists them by number). One pass over the instructions in program order,
// which every lane keeps, with the state of buffers and microbatches; what must hold across lanes is asked of the order.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/program/border_rules.h"
#include "common/program/copy_rules.h"
#include "common/program/gradient_rules.h"
#include "common/program/microbatch_rules.h"
#include "common/program/parameter_rules.h"
#include "common/program/program.h"
#include "common/program/program_check.h"
#include "common/program/program_header.h"
#include "common/program/step_rules.h"

namespace motley {
namespace {

class Validator {
 public:
  explicit Validator(const Program& program)
      : check_(program),
        parameters_(check_),
        gradients_(check_),
        microbatches_(check_),
        borders_(check_, microbatches_),
        copies_(check_, microbatches_, parameters_, gradients_),
        step_(check_, gradients_, copies_) {}

  absl::Status Run() {
    const std::vector<Instruction>& instructions = check_.program.instructions;
    for (check_.at = 0; check_.at < static_cast<int>(instructions.size()); ++check_.at) {
      const Operation& op = instructions[check_.at].op;
      const OperationTraits& traits = TraitsOf(op);
      if (!check_.training() && traits.in_evaluation == InEvaluation::kNo) {
        return check_.Error("an evaluation program has only forward work");
      }
      if (step_.ScalarsReduced() && traits.after_scalars == AfterScalars::kNo) {
        return check_.Error("it must stand before reduce_scalars");
      }
      MOTLEY_RETURN_IF_ERROR(std::visit([this](const auto& o) { return Check(o); }, op));
    }
    return CheckEnd();
  }

 private:
  int32_t head() const { return check_.head(); }

  // ---- buffers ----

  template <typename Op>
  absl::Status CheckFill(const Op& op) {
    MOTLEY_RETURN_IF_ERROR(parameters_.Check(op));
    return step_.NotStepped(op.unit, op.more_units);
  }
  absl::Status Check(const Gather& g) { return CheckFill(g); }
  absl::Status Check(const Broadcast& b) { return CheckFill(b); }
  absl::Status Check(const Release& r) { return parameters_.Check(r); }

  template <typename Op>
  absl::Status CheckGradients(const Op& op) {
    MOTLEY_RETURN_IF_ERROR(gradients_.Check(op));
    return step_.NotStepped(op.unit, op.more_units);
  }
  absl::Status Check(const ZeroGrad& z) { return CheckGradients(z); }
  absl::Status Check(const ReduceScatter& r) { return CheckGradients(r); }
  absl::Status Check(const AllReduce& r) { return CheckGradients(r); }

  // ---- compute ----

  // What forward, recompute and the backwards that need parameters have in common.
  template <typename Op>
  absl::Status CheckCompute(const Op& op, int32_t unit) {
    MOTLEY_RETURN_IF_ERROR(parameters_.BufferHolds(op.buffer, unit));
    if (unit != head()) {
      if (op.tied_buffer != -1 && int64_t{op.unit} + op.more_units != head()) {
        return check_.Error("only the head may name a tied buffer");
      }
      return absl::OkStatus();
    }
    const int tied = op.tied_buffer != -1 ? 1 : 0;
    if (tied_ == -1) tied_ = tied;
    if (tied_ != tied) return check_.Error("the head must name a tied buffer everywhere or nowhere");
    return tied ? parameters_.BufferHolds(op.tied_buffer, 0) : absl::OkStatus();
  }

  absl::Status Check(const Forward& f) {
    MOTLEY_RETURN_IF_ERROR(microbatches_.CheckTp(f));
    return check_.ForCells(f, false, [&](int32_t unit, int32_t m) -> absl::Status {
      MOTLEY_RETURN_IF_ERROR(CheckCompute(f, unit));
      const UnitPass& pass = microbatches_.At(unit, m).forward;
      if (pass.done >= 0) return check_.Error(absl::StrCat("unit ", unit, " already ran microbatch ", m, " forward"));
      if (check_.Held(unit - 1)) {
        const UnitPass& before = microbatches_.At(unit - 1, m).forward;
        if (before.done < 0) return check_.Error(absl::StrCat("microbatch ", m, " must run unit ", unit - 1, " first"));
        MOTLEY_RETURN_IF_ERROR(check_.Ordered(before.done_sum, "it must wait for the sum behind unit ", unit - 1));
      } else if (unit > 0) {
        MOTLEY_RETURN_IF_ERROR(borders_.InputReceived(unit, m));
      }
      // A whole head that trains leaves its loss to its backward.
      if (unit == head() && (!check_.training() || f.segment != UnitSegment::kWhole)) step_.MadeLoss();
      return microbatches_.RunForward(f, unit, m);
    });
  }

  absl::Status Check(const Recompute& r) {
    MOTLEY_RETURN_IF_ERROR(microbatches_.CheckTp(r));
    return check_.ForCells(r, false, [&](int32_t unit, int32_t m) -> absl::Status {
      MOTLEY_RETURN_IF_ERROR(CheckCompute(r, unit));
      return microbatches_.RunRecompute(r, unit, m);
    });
  }

  // Of both parts, or of the first.
  template <typename Op>
  absl::Status CheckBackward(const Op& op, int32_t unit, int32_t m) {
    MOTLEY_RETURN_IF_ERROR(CheckCompute(op, unit));
    UnitWork& work = microbatches_.At(unit, m);
    if (work.input.done >= 0) return check_.Error(absl::StrCat("unit ", unit, " already ran microbatch ", m, " backward"));
    if (work.forward.done < 0) {
      return check_.Error(absl::StrCat("microbatch ", m, " must run ", unit == head() ? "the head" : absl::StrCat("unit ", unit),
                                       " forward first"));
    }
    if (check_.Held(unit + 1)) {
      const UnitPass& behind = microbatches_.At(unit + 1, m).input;
      if (behind.done < 0) return check_.Error(absl::StrCat("microbatch ", m, " must run unit ", unit + 1, " backward first"));
      MOTLEY_RETURN_IF_ERROR(check_.Ordered(behind.done_sum, "it must wait for the sum behind unit ", unit + 1));
    } else if (unit != head()) {
      MOTLEY_RETURN_IF_ERROR(borders_.GradientReceived(unit, m));
    }
    MOTLEY_RETURN_IF_ERROR(microbatches_.SameTp(op.tp_group, work));
    MOTLEY_RETURN_IF_ERROR(microbatches_.BeginBackward(unit, m));
    if (unit == head() && work.forward.half < 0) step_.MadeLoss();
    return microbatches_.Advance(op, true, work.input);
  }

  template <typename Op>
  absl::Status WriteGradients(const Op& op, int32_t unit) {
    MOTLEY_RETURN_IF_ERROR(gradients_.Write(op.grad, unit));
    MOTLEY_RETURN_IF_ERROR(step_.NotStepped(unit, 0));
    return unit == head() && op.tied_grad != -1 ? gradients_.Write(op.tied_grad, 0) : absl::OkStatus();
  }

  absl::Status Check(const Backward& b) {
    MOTLEY_RETURN_IF_ERROR(microbatches_.CheckTp(b));
    return check_.ForCells(b, true, [&](int32_t unit, int32_t m) -> absl::Status {
      MOTLEY_RETURN_IF_ERROR(CheckBackward(b, unit, m));
      if ((b.tied_buffer == -1) != (b.tied_grad == -1)) return check_.Error("tied and tied_grad belong together");
      UnitPass& weight = microbatches_.At(unit, m).weight;
      if (weight.begun() && b.segment == UnitSegment::kWhole) return check_.Error("its backward_weight ran already");
      MOTLEY_RETURN_IF_ERROR(WriteGradients(b, unit));
      return microbatches_.Advance(b, true, weight);
    });
  }

  absl::Status Check(const BackwardInput& b) {
    MOTLEY_RETURN_IF_ERROR(microbatches_.CheckTp(b));
    return check_.ForCells(b, true, [&](int32_t unit, int32_t m) { return CheckBackward(b, unit, m); });
  }

  absl::Status Check(const BackwardWeight& b) {
    return check_.ForCells(b, true, [&](int32_t unit, int32_t m) -> absl::Status {
      MOTLEY_RETURN_IF_ERROR(microbatches_.RunWeight(b, unit, m));
      if (unit == head() && (tied_ == 1) != (b.tied_grad != -1)) return check_.Error("tied and tied_grad belong together");
      if (b.tied_grad != -1 && int64_t{b.unit} + b.more_units != head()) {
        return check_.Error("only the head may name a tied buffer");
      }
      return WriteGradients(b, unit);
    });
  }

  absl::Status Check(const AllReduceActivation& op) {
    MOTLEY_RETURN_IF_ERROR(microbatches_.Check(op));
    const UnitPass& forward = microbatches_.At(op.unit, op.microbatch).forward;
    const UnitPass& input = microbatches_.At(op.unit, op.microbatch).input;
    const bool sent = (forward.done_sum == check_.at && borders_.OutputSent(op.unit, op.microbatch)) ||
                      (input.done_sum == check_.at && borders_.GradientSent(op.unit, op.microbatch));
    return sent ? check_.Error("what it sums was used already") : absl::OkStatus();
  }

  // ---- hand-overs, copies, the end of the step ----

  absl::Status Check(const BroadcastActivation& op) { return borders_.Check(op); }
  absl::Status Check(const SendActivation& op) { return borders_.Check(op); }
  absl::Status Check(const ReceiveActivation& op) { return borders_.Check(op); }
  absl::Status Check(const SendGradient& op) { return borders_.Check(op); }
  absl::Status Check(const ReceiveGradient& op) { return borders_.Check(op); }
  absl::Status Check(const OffloadActivation& op) { return copies_.Check(op); }
  absl::Status Check(const PrefetchActivation& op) { return copies_.Check(op); }
  absl::Status Check(const PrefetchParameters& op) {
    MOTLEY_RETURN_IF_ERROR(copies_.Check(op));
    return step_.NotStepped(op.unit, op.more_units);
  }
  absl::Status Check(const OffloadGradients& op) { return copies_.Check(op); }
  absl::Status Check(const PrefetchOptimizer& op) { return copies_.Check(op); }
  absl::Status Check(const OffloadOptimizer& op) { return copies_.Check(op); }
  absl::Status Check(const ReduceScalars& op) { return step_.Check(op); }
  absl::Status Check(const OptimizerStep& op) { return step_.Check(op); }

  absl::Status CheckEnd() const {
    for (int32_t m = 0; m < static_cast<int32_t>(check_.program.microbatches.size()); ++m) {
      for (const int32_t u : check_.program.units) MOTLEY_RETURN_IF_ERROR(CheckWork(u, m));
    }
    return step_.CheckEnd();
  }

  // That a microbatch went through a unit, and what it made to where it is needed.
  absl::Status CheckWork(int32_t u, int32_t m) const {
    const UnitWork& work = microbatches_.At(u, m);
    if (work.forward.done < 0) return check_.EndError(absl::StrCat("unit ", u, " never ran microbatch ", m, " forward"));
    MOTLEY_RETURN_IF_ERROR(microbatches_.CheckSums(u, m));
    const bool sends = microbatches_.Sends(u, m);
    if (u != head() && !check_.Held(u + 1) && sends) MOTLEY_RETURN_IF_ERROR(borders_.OutputAllSent(u, m));
    if (!check_.training()) return absl::OkStatus();
    if (work.input.done < 0) return check_.EndError(absl::StrCat("unit ", u, " never ran microbatch ", m, " backward"));
    if (work.weight.done < 0) {
      return check_.EndError(absl::StrCat("unit ", u, " never ran microbatch ", m, "'s backward_weight"));
    }
    return u == 0 || check_.Held(u - 1) || !sends ? absl::OkStatus() : borders_.GradientAllSent(u, m);
  }

  ProgramCheck check_;
  ParameterRules parameters_;
  GradientRules gradients_;
  MicrobatchRules microbatches_;
  BorderRules borders_;
  CopyRules copies_;
  StepRules step_;
  int tied_ = -1;  // whether the head names a tied buffer; -1 = no head yet
};

}  // namespace

absl::Status Validate(const Program& program) {
  MOTLEY_RETURN_IF_ERROR(ValidateHeader(program));
  return Validator(program).Run();
}

}  // namespace motley
