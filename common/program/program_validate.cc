// The local rules of a program (docs/program.md lists them by number). One pass over the instructions in program order,
// which every lane keeps, with the state of buffers and microbatches; what must hold across lanes is asked of the order.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/program/program.h"
#include "common/program/program_order.h"

namespace motley {
namespace {

// A parameter buffer's present tenant: unit -1 = free.
struct ParameterBuffer {
  int32_t unit = -1;
  int gather = -1;        // instruction that filled it
  int last_release = -1;  // instruction that freed it last
};
// A gradient buffer's present tenant: unit -1 = free.
struct GradientBuffer {
  int32_t unit = -1;
  int last_write = -1;   // compute lane
  int last_reduce = -1;  // instruction that freed it last
};
// How far one microbatch has come in one unit. Instruction indices, -1 = not yet.
struct Work {
  int forward = -1, recompute = -1, backward = -1;
  Keep keep = Keep::kAll;
};

class Validator {
 public:
  explicit Validator(const Program& program)
      : program_(program),
        order_(program),
        parameters_(program.parameter_buffers.size()),
        gradients_(program.gradient_buffers.size()),
        work_(program.microbatches.size(), std::vector<Work>(program.num_units)),
        reduced_(program.num_units, false) {}

  absl::Status Run() {
    for (at_ = 0; at_ < static_cast<int>(program_.instructions.size()); ++at_) {
      const Operation& op = program_.instructions[at_].op;
      const OperationTraits& traits = TraitsOf(op);
      if (!training() && traits.in_evaluation == InEvaluation::kNo) return Error("an evaluation program has only forward work");
      if (scalars_ >= 0 && traits.after_scalars == AfterScalars::kNo) return Error("it must stand before reduce_scalars");
      MOTLEY_RETURN_IF_ERROR(std::visit([this](const auto& o) { return Check(o); }, op));
    }
    return CheckEnd();
  }

 private:
  bool training() const { return program_.kind == ProgramKind::kTraining; }
  int32_t head() const { return program_.num_units - 1; }

  absl::Status Error(const std::string& rule) const {
    const Operation& op = program_.instructions[at_].op;
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", program_.rank, ", instruction ", at_, " (",
                                                      std::string(OperationName(op)), "): ", rule));
  }
  absl::Status EndError(const std::string& rule) const {
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", program_.rank, ", at its end: ", rule));
  }
  // That instruction `earlier` has finished when the present one starts.
  absl::Status Ordered(int earlier, const std::string& rule) const {
    if (earlier < 0 || order_.Before(earlier, at_)) return absl::OkStatus();
    return Error(absl::StrCat(rule, "; no chain of lane order and `after` leads from instruction ", earlier, " here"));
  }
  template <typename T>
  absl::Status InRange(const char* what, int32_t index, const std::vector<T>& list) const {
    if (index >= 0 && static_cast<size_t>(index) < list.size()) return absl::OkStatus();
    return Error(absl::StrCat(what, " ", index, " does not exist; the program has ", list.size()));
  }
  absl::Status UnitInRange(int32_t unit) const {
    if (unit >= 0 && unit < program_.num_units) return absl::OkStatus();
    return Error(absl::StrCat("unit ", unit, " does not exist; the program has ", program_.num_units));
  }

  // ---- parameter buffers ----

  absl::Status Check(const Gather& g) {
    MOTLEY_RETURN_IF_ERROR(UnitInRange(g.unit));
    MOTLEY_RETURN_IF_ERROR(InRange("parameter buffer", g.buffer, program_.parameter_buffers));
    ParameterBuffer& buffer = parameters_[g.buffer];
    if (buffer.unit >= 0) {
      return Error(absl::StrCat("parameter buffer ", g.buffer, " still holds unit ", buffer.unit, "; release it first"));
    }
    MOTLEY_RETURN_IF_ERROR(
        Ordered(buffer.last_release, absl::StrCat("a gather into parameter buffer ", g.buffer, " must wait for its release")));
    buffer.unit = g.unit;
    buffer.gather = at_;
    return absl::OkStatus();
  }

  absl::Status Check(const Release& r) {
    MOTLEY_RETURN_IF_ERROR(InRange("parameter buffer", r.buffer, program_.parameter_buffers));
    ParameterBuffer& buffer = parameters_[r.buffer];
    if (buffer.unit < 0) return Error(absl::StrCat("parameter buffer ", r.buffer, " holds nothing"));
    // Uses are on the release's own lane and earlier; the gather is not.
    MOTLEY_RETURN_IF_ERROR(
        Ordered(buffer.gather, absl::StrCat("the release of parameter buffer ", r.buffer, " must wait for its gather")));
    buffer.unit = -1;
    buffer.last_release = at_;
    return absl::OkStatus();
  }

  // That `buffer` holds `unit`, whole.
  absl::Status Holds(int32_t index, int32_t unit) const {
    MOTLEY_RETURN_IF_ERROR(InRange("parameter buffer", index, program_.parameter_buffers));
    const ParameterBuffer& buffer = parameters_[index];
    if (buffer.unit != unit) {
      return Error(absl::StrCat("parameter buffer ", index, " holds ",
                                buffer.unit < 0 ? "nothing" : absl::StrCat("unit ", buffer.unit), ", not unit ", unit,
                                "; gather it first"));
    }
    return Ordered(buffer.gather, absl::StrCat("use of unit ", unit, " must wait for its gather"));
  }

  // What forward, recompute and backward have in common.
  template <typename Compute>
  absl::Status CheckCompute(const Compute& op) {
    MOTLEY_RETURN_IF_ERROR(UnitInRange(op.unit));
    MOTLEY_RETURN_IF_ERROR(InRange("microbatch", op.microbatch, program_.microbatches));
    MOTLEY_RETURN_IF_ERROR(Holds(op.buffer, op.unit));
    if (op.unit != head()) {
      if (op.tied_buffer != -1) return Error("only the head may name a tied buffer");
      return absl::OkStatus();
    }
    const int tied = op.tied_buffer != -1 ? 1 : 0;
    if (tied_ == -1) tied_ = tied;
    if (tied_ != tied) return Error("the head must name a tied buffer everywhere or nowhere");
    return tied ? Holds(op.tied_buffer, 0) : absl::OkStatus();
  }

  // ---- microbatches ----

  Work& WorkOf(int32_t unit, int32_t microbatch) { return work_[microbatch][unit]; }

  absl::Status Check(const Forward& f) {
    MOTLEY_RETURN_IF_ERROR(CheckCompute(f));
    Work& work = WorkOf(f.unit, f.microbatch);
    if (work.forward >= 0) return Error(absl::StrCat("unit ", f.unit, " already ran microbatch ", f.microbatch, " forward"));
    if (f.unit > 0 && WorkOf(f.unit - 1, f.microbatch).forward < 0) {
      return Error(absl::StrCat("microbatch ", f.microbatch, " must run unit ", f.unit - 1, " first"));
    }
    if (training() == (f.keep == Keep::kNothing)) {
      return Error(training() ? "a training program keeps all or the boundary" : "an evaluation program keeps nothing");
    }
    work.forward = at_;
    work.keep = f.keep;
    if (f.unit == head()) last_loss_ = at_;
    return absl::OkStatus();
  }

  absl::Status Check(const Recompute& r) {
    MOTLEY_RETURN_IF_ERROR(CheckCompute(r));
    Work& work = WorkOf(r.unit, r.microbatch);
    if (work.forward < 0 || work.keep != Keep::kBoundary) return Error("recompute needs a forward that kept the boundary");
    if (work.recompute >= 0) return Error(absl::StrCat("microbatch ", r.microbatch, " was recomputed already"));
    if (work.backward >= 0) return Error("recompute must come before its backward");
    work.recompute = at_;
    return absl::OkStatus();
  }

  absl::Status Check(const Backward& b) {
    MOTLEY_RETURN_IF_ERROR(CheckCompute(b));
    Work& work = WorkOf(b.unit, b.microbatch);
    if (work.backward >= 0) return Error(absl::StrCat("unit ", b.unit, " already ran microbatch ", b.microbatch, " backward"));
    if (b.unit == head() ? work.forward < 0 : WorkOf(b.unit + 1, b.microbatch).backward < 0) {
      return Error(b.unit == head()
                       ? absl::StrCat("microbatch ", b.microbatch, " must run the head forward first")
                       : absl::StrCat("microbatch ", b.microbatch, " must run unit ", b.unit + 1, " backward first"));
    }
    if (work.keep == Keep::kBoundary && work.recompute < 0) return Error("only the boundary was kept; recompute first");
    if ((b.tied_buffer == -1) != (b.tied_grad == -1)) return Error("tied and tied_grad belong together");
    MOTLEY_RETURN_IF_ERROR(Write(b.grad, b.unit));
    if (b.tied_grad != -1) MOTLEY_RETURN_IF_ERROR(Write(b.tied_grad, 0));
    work.backward = at_;
    return absl::OkStatus();
  }

  // ---- gradients ----

  absl::Status Write(int32_t index, int32_t unit) {
    MOTLEY_RETURN_IF_ERROR(InRange("gradient buffer", index, program_.gradient_buffers));
    GradientBuffer& buffer = gradients_[index];
    if (buffer.unit >= 0 && buffer.unit != unit) {
      return Error(absl::StrCat("gradient buffer ", index, " still holds unit ", buffer.unit, "; reduce it first"));
    }
    if (buffer.unit < 0) {
      MOTLEY_RETURN_IF_ERROR(Ordered(
          buffer.last_reduce, absl::StrCat("the first write of gradient buffer ", index, " must wait for its last reduction")));
    }
    buffer.unit = unit;
    buffer.last_write = at_;
    return absl::OkStatus();
  }

  absl::Status Check(const ZeroGrad& z) {
    MOTLEY_RETURN_IF_ERROR(UnitInRange(z.unit));
    MOTLEY_RETURN_IF_ERROR(InRange("gradient buffer", z.grad, program_.gradient_buffers));
    if (gradients_[z.grad].unit >= 0) {
      return Error(absl::StrCat("gradient buffer ", z.grad, " holds gradients that were not reduced"));
    }
    return Write(z.grad, z.unit);
  }

  absl::Status Check(const ReduceScatter& r) {
    MOTLEY_RETURN_IF_ERROR(UnitInRange(r.unit));
    MOTLEY_RETURN_IF_ERROR(InRange("gradient buffer", r.grad, program_.gradient_buffers));
    GradientBuffer& buffer = gradients_[r.grad];
    if (buffer.unit != r.unit) return Error(absl::StrCat("gradient buffer ", r.grad, " holds no gradients of unit ", r.unit));
    MOTLEY_RETURN_IF_ERROR(
        Ordered(buffer.last_write, absl::StrCat("the reduction of unit ", r.unit, " must wait for its last backward")));
    buffer.unit = -1;
    buffer.last_reduce = at_;
    reduced_[r.unit] = true;
    return absl::OkStatus();
  }

  // ---- the end of the step ----

  absl::Status Check(const ReduceScalars&) {
    if (scalars_ >= 0) return Error("the scalars are reduced once");
    MOTLEY_RETURN_IF_ERROR(Ordered(last_loss_, "reduce_scalars must wait for the last loss"));
    scalars_ = at_;
    return absl::OkStatus();
  }

  absl::Status Check(const OptimizerStep&) {
    if (optimizer_ >= 0) return Error("the optimizer steps once");
    if (scalars_ < 0) return Error("reduce_scalars must come first");
    MOTLEY_RETURN_IF_ERROR(Ordered(scalars_, "the optimizer must wait for reduce_scalars"));
    optimizer_ = at_;
    return absl::OkStatus();
  }

  absl::Status CheckEnd() const {
    for (size_t m = 0; m < work_.size(); ++m) {
      for (size_t u = 0; u < work_[m].size(); ++u) {
        if (work_[m][u].forward < 0) return EndError(absl::StrCat("unit ", u, " never ran microbatch ", m, " forward"));
        if (training() && work_[m][u].backward < 0)
          return EndError(absl::StrCat("unit ", u, " never ran microbatch ", m, " backward"));
      }
    }
    if (scalars_ < 0) return EndError("reduce_scalars is missing");
    if (!training()) return absl::OkStatus();
    for (size_t g = 0; g < gradients_.size(); ++g) {
      if (gradients_[g].unit >= 0) {
        return EndError(
            absl::StrCat("gradient buffer ", g, " holds gradients of unit ", gradients_[g].unit, " that were not reduced"));
      }
    }
    for (size_t u = 0; u < reduced_.size(); ++u) {
      if (!reduced_[u])
        return EndError(absl::StrCat("the gradients of unit ", u, " are never reduced; without samples, zero them first"));
    }
    if (optimizer_ < 0) return EndError("optimizer_step is missing");
    return absl::OkStatus();
  }

  const Program& program_;
  const ProgramOrder order_;
  std::vector<ParameterBuffer> parameters_;
  std::vector<GradientBuffer> gradients_;
  std::vector<std::vector<Work>> work_;  // [microbatch][unit]
  std::vector<bool> reduced_;            // by unit
  int at_ = 0;
  int tied_ = -1;  // whether the head names a tied buffer; -1 = no head yet
  int last_loss_ = -1, scalars_ = -1, optimizer_ = -1;
};

absl::Status CheckHeader(const Program& p) {
  const auto error = [&p](const std::string& rule) {
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", p.rank, ", header: ", rule));
  };
  if (p.version != 1) return error(absl::StrCat("version ", p.version, " is not known, this build runs 1"));
  if (p.world < 1 || p.rank < 0 || p.rank >= p.world) return error(absl::StrCat("rank must be in 0..world-1 of world ", p.world));
  // More would be no model, and the validator's own tables grow with it.
  constexpr int32_t kMaxUnits = 1 << 16;
  if (p.num_units < 2 || p.num_units > kMaxUnits) {
    return error(absl::StrCat("units must be 2 (embedding and head) to ", kMaxUnits, ", got ", p.num_units));
  }
  // Every unit runs every microbatch forward: fewer instructions cannot be a program (and bounds the tables).
  if (p.microbatches.size() * p.num_units > p.instructions.size()) {
    return error(absl::StrCat(p.instructions.size(), " instructions are fewer than ", p.microbatches.size(), " microbatches x ",
                              p.num_units, " units"));
  }
  for (const auto& [what, list] : {std::pair{"microbatch", &p.microbatches}, std::pair{"parameter buffer", &p.parameter_buffers},
                                   std::pair{"gradient buffer", &p.gradient_buffers}}) {
    for (size_t i = 0; i < list->size(); ++i) {
      if ((*list)[i] < 1) return error(absl::StrCat(what, " ", i, " must have a size of at least 1, got ", (*list)[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDependencies(const Program& p) {
  for (size_t i = 0; i < p.instructions.size(); ++i) {
    int64_t previous = -1;
    for (const int32_t dependency : p.instructions[i].after) {
      if (dependency <= previous || dependency >= static_cast<int64_t>(i)) {
        return absl::FailedPreconditionError(
            absl::StrCat("program of rank ", p.rank, ", instruction ", i, " (", std::string(OperationName(p.instructions[i].op)),
                         "): `after` must be ascending and name earlier instructions, got ", dependency));
      }
      previous = dependency;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const Program& program) {
  MOTLEY_RETURN_IF_ERROR(CheckHeader(program));
  MOTLEY_RETURN_IF_ERROR(CheckDependencies(program));
  return Validator(program).Run();
}

}  // namespace motley
