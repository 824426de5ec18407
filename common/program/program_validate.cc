// The local rules of instructions (docs/program.md lists them by number). One pass over the instructions in program order,
// which every lane keeps, with the state of buffers and microbatches; what must hold across lanes is asked of the order.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "common/program/handed_samples.h"
#include "common/program/program.h"
#include "common/program/program_header.h"
#include "common/program/program_index.h"
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
        work_(program.microbatches.size(), std::vector<Work>(program.units.size())),
        index_(program),
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
  bool Held(int32_t unit) const { return unit >= 0 && unit < program_.num_units && index_.place[unit] >= 0; }
  absl::Status Holds(int32_t unit) const {
    MOTLEY_RETURN_IF_ERROR(UnitInRange(unit));
    if (Held(unit)) return absl::OkStatus();
    return Error(absl::StrCat("the rank does not hold unit ", unit, "; it holds ",
                              program_.units.empty() ? "none" : Echo(absl::StrJoin(program_.units, ","))));
  }
  // Whose arrays the rank may have: what it holds, and the embedding of a tied head.
  absl::Status HoldsArray(int32_t unit) const { return unit == 0 && Held(head()) ? absl::OkStatus() : Holds(unit); }
  absl::Status InGroup(int32_t group) const {
    MOTLEY_RETURN_IF_ERROR(InRange("group", group, program_.groups));
    if (index_.in_group[group]) return absl::OkStatus();
    return Error(absl::StrCat("the rank is not in group ", group, " (", Echo(absl::StrJoin(program_.groups[group], ",")), ")"));
  }
  // A home's own unit is all that it takes.
  absl::Status CheckHome(const char* what, int32_t index, const std::vector<UnitBuffer>& buffers, int32_t unit) const {
    const int32_t home_of = buffers[index].home_of;
    if (home_of < 0 || home_of == unit) return absl::OkStatus();
    return Error(absl::StrCat(what, " buffer ", index, " is the home of unit ", home_of, ", not for unit ", unit));
  }

  // ---- parameter buffers ----

  absl::Status Check(const Gather& g) {
    MOTLEY_RETURN_IF_ERROR(HoldsArray(g.unit));
    MOTLEY_RETURN_IF_ERROR(InGroup(g.group));
    MOTLEY_RETURN_IF_ERROR(InRange("parameter buffer", g.buffer, program_.parameter_buffers));
    MOTLEY_RETURN_IF_ERROR(CheckHome("parameter", g.buffer, program_.parameter_buffers, g.unit));
    ParameterBuffer& buffer = parameters_[g.buffer];
    if (buffer.unit >= 0) {
      if (program_.parameter_buffers[g.buffer].home_of >= 0) {
        return Error(absl::StrCat("parameter buffer ", g.buffer, " is a home and gathered already"));
      }
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
    if (program_.parameter_buffers[r.buffer].home_of >= 0) {
      return Error(absl::StrCat("parameter buffer ", r.buffer, " is a home, which is never released"));
    }
    if (buffer.unit < 0) return Error(absl::StrCat("parameter buffer ", r.buffer, " holds nothing"));
    // Uses are on the release's own lane and earlier; the gather is not.
    MOTLEY_RETURN_IF_ERROR(
        Ordered(buffer.gather, absl::StrCat("the release of parameter buffer ", r.buffer, " must wait for its gather")));
    buffer.unit = -1;
    buffer.last_release = at_;
    return absl::OkStatus();
  }

  // That `buffer` holds `unit`, whole.
  absl::Status BufferHolds(int32_t index, int32_t unit) const {
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
    MOTLEY_RETURN_IF_ERROR(Holds(op.unit));
    MOTLEY_RETURN_IF_ERROR(InRange("microbatch", op.microbatch, program_.microbatches));
    MOTLEY_RETURN_IF_ERROR(BufferHolds(op.buffer, op.unit));
    if (op.unit != head()) {
      if (op.tied_buffer != -1) return Error("only the head may name a tied buffer");
      return absl::OkStatus();
    }
    const int tied = op.tied_buffer != -1 ? 1 : 0;
    if (tied_ == -1) tied_ = tied;
    if (tied_ != tied) return Error("the head must name a tied buffer everywhere or nowhere");
    return tied ? BufferHolds(op.tied_buffer, 0) : absl::OkStatus();
  }

  // ---- microbatches ----

  // Of a unit that the rank holds.
  Work& WorkOf(int32_t unit, int32_t microbatch) { return work_[microbatch][index_.place[unit]]; }

  absl::Status Check(const Forward& f) {
    MOTLEY_RETURN_IF_ERROR(CheckCompute(f));
    Work& work = WorkOf(f.unit, f.microbatch);
    if (work.forward >= 0) return Error(absl::StrCat("unit ", f.unit, " already ran microbatch ", f.microbatch, " forward"));
    if (Held(f.unit - 1) && WorkOf(f.unit - 1, f.microbatch).forward < 0) {
      return Error(absl::StrCat("microbatch ", f.microbatch, " must run unit ", f.unit - 1, " first"));
    }
    if (f.unit > 0 && !Held(f.unit - 1)) {
      MOTLEY_RETURN_IF_ERROR(AllReceived("input", received_activations_, f.unit, f.microbatch));
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
    if (work.forward < 0) {
      return Error(absl::StrCat("microbatch ", b.microbatch, " must run ",
                                b.unit == head() ? "the head" : absl::StrCat("unit ", b.unit), " forward first"));
    }
    if (Held(b.unit + 1) && WorkOf(b.unit + 1, b.microbatch).backward < 0) {
      return Error(absl::StrCat("microbatch ", b.microbatch, " must run unit ", b.unit + 1, " backward first"));
    }
    if (b.unit != head() && !Held(b.unit + 1)) {
      MOTLEY_RETURN_IF_ERROR(AllReceived("gradient of the output", received_gradients_, b.unit + 1, b.microbatch));
    }
    if (work.keep == Keep::kBoundary && work.recompute < 0) return Error("only the boundary was kept; recompute first");
    if ((b.tied_buffer == -1) != (b.tied_grad == -1)) return Error("tied and tied_grad belong together");
    MOTLEY_RETURN_IF_ERROR(Write(b.grad, b.unit));
    if (b.tied_grad != -1) MOTLEY_RETURN_IF_ERROR(Write(b.tied_grad, 0));
    work.backward = at_;
    return absl::OkStatus();
  }

  // ---- hand-overs ----

  // Of the two units at a border, the one on this rank's side.
  enum class Ours { kBefore, kUnit };
  // What all four have in common.
  template <typename Op>
  absl::Status CheckHandOver(const Op& op, Ours ours, HandedSamples& handed) {
    MOTLEY_RETURN_IF_ERROR(UnitInRange(op.unit));
    if (op.unit == 0) return Error("unit 0 has no unit before it; nothing is handed over");
    const int32_t here = ours == Ours::kUnit ? op.unit : op.unit - 1, there = ours == Ours::kUnit ? op.unit - 1 : op.unit;
    MOTLEY_RETURN_IF_ERROR(Holds(here));
    if (Held(there)) return Error(absl::StrCat("the rank holds unit ", there, " itself; nothing is handed over"));
    MOTLEY_RETURN_IF_ERROR(InRange("microbatch", op.microbatch, program_.microbatches));
    if (op.peer < 0 || op.peer >= program_.world || op.peer == program_.rank) {
      return Error(absl::StrCat("peer ", op.peer, " is no other rank of ", program_.world));
    }
    const Microbatch& microbatch = program_.microbatches[op.microbatch];
    const int64_t first = op.first, end = first + op.samples;
    if (op.samples < 1 || first < microbatch.first || end > microbatch.end()) {
      return Error(absl::StrCat("samples ", first, " to ", end, " are not in microbatch ", op.microbatch, ", which has ",
                                microbatch.first, " to ", microbatch.end()));
    }
    if (const auto twice = handed.Add(op.unit, op.microbatch, {first, end}, at_)) {
      return Error(absl::StrCat("samples ", twice->first, " to ", twice->second, " of microbatch ", op.microbatch,
                                " are handed over twice"));
    }
    return absl::OkStatus();
  }
  absl::Status AllReceived(const char* what, const HandedSamples& handed, int32_t unit, int32_t microbatch) const {
    const HandedSamples::Place& got = handed.At(unit, microbatch);
    if (const int64_t missing = program_.microbatches[microbatch].samples - got.samples; missing > 0) {
      return Error(absl::StrCat("the ", what, " of ", missing, " samples of microbatch ", microbatch, " was not received"));
    }
    return Ordered(got.last, absl::StrCat("it must wait for what it receives for microbatch ", microbatch));
  }
  absl::Status CheckSend(int made, const char* what, int32_t unit, int32_t microbatch) const {
    if (made < 0) {
      return Error(absl::StrCat("microbatch ", microbatch, " must run unit ", unit, " ", what, " before it is sent"));
    }
    return Ordered(made, absl::StrCat("it must wait for the ", what, " of unit ", unit));
  }

  absl::Status Check(const SendActivation& s) {
    MOTLEY_RETURN_IF_ERROR(CheckHandOver(s, Ours::kBefore, sent_activations_));
    return CheckSend(WorkOf(s.unit - 1, s.microbatch).forward, "forward", s.unit - 1, s.microbatch);
  }
  absl::Status Check(const SendGradient& s) {
    MOTLEY_RETURN_IF_ERROR(CheckHandOver(s, Ours::kUnit, sent_gradients_));
    return CheckSend(WorkOf(s.unit, s.microbatch).backward, "backward", s.unit, s.microbatch);
  }
  absl::Status Check(const ReceiveActivation& r) { return CheckHandOver(r, Ours::kUnit, received_activations_); }
  absl::Status Check(const ReceiveGradient& r) { return CheckHandOver(r, Ours::kBefore, received_gradients_); }

  // ---- gradients ----

  absl::Status Write(int32_t index, int32_t unit) {
    MOTLEY_RETURN_IF_ERROR(InRange("gradient buffer", index, program_.gradient_buffers));
    MOTLEY_RETURN_IF_ERROR(CheckHome("gradient", index, program_.gradient_buffers, unit));
    // A sum from another buffer would be added to the shard in the home, which the home's first write zeroes.
    if (const int32_t home = index_.gradient_home[unit]; home >= 0 && home != index) {
      return Error(absl::StrCat("the home of unit ", unit, "'s gradients is buffer ", home, ", not ", index));
    }
    GradientBuffer& buffer = gradients_[index];
    if (buffer.unit >= 0 && buffer.unit != unit) {
      return Error(absl::StrCat("gradient buffer ", index, " still holds unit ", buffer.unit, "; reduce it first"));
    }
    if (buffer.unit < 0) {
      if (buffer.last_reduce >= 0 && program_.gradient_buffers[index].home_of >= 0) {
        return Error(absl::StrCat("gradient buffer ", index, " is a home and reduced already"));
      }
      MOTLEY_RETURN_IF_ERROR(Ordered(
          buffer.last_reduce, absl::StrCat("the first write of gradient buffer ", index, " must wait for its last reduction")));
    }
    buffer.unit = unit;
    buffer.last_write = at_;
    return absl::OkStatus();
  }

  absl::Status Check(const ZeroGrad& z) {
    MOTLEY_RETURN_IF_ERROR(HoldsArray(z.unit));
    MOTLEY_RETURN_IF_ERROR(InRange("gradient buffer", z.grad, program_.gradient_buffers));
    if (gradients_[z.grad].unit >= 0) {
      return Error(absl::StrCat("gradient buffer ", z.grad, " holds gradients that were not reduced"));
    }
    return Write(z.grad, z.unit);
  }

  absl::Status Check(const ReduceScatter& r) {
    MOTLEY_RETURN_IF_ERROR(HoldsArray(r.unit));
    MOTLEY_RETURN_IF_ERROR(InGroup(r.group));
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
    for (int32_t m = 0; m < static_cast<int32_t>(work_.size()); ++m) {
      for (const int32_t u : program_.units) MOTLEY_RETURN_IF_ERROR(CheckWork(u, m));
    }
    if (scalars_ < 0) return EndError("reduce_scalars is missing");
    if (!training()) return absl::OkStatus();
    for (size_t g = 0; g < gradients_.size(); ++g) {
      const int32_t unit = gradients_[g].unit;
      if (unit >= 0)
        return EndError(absl::StrCat("gradient buffer ", g, " holds gradients of unit ", unit, " that were not reduced"));
    }
    for (const int32_t u : program_.units) {
      if (!reduced_[u])
        return EndError(absl::StrCat("the gradients of unit ", u, " are never reduced; without samples, zero them first"));
    }
    if (optimizer_ < 0) return EndError("optimizer_step is missing");
    return absl::OkStatus();
  }

  // That a microbatch went through a unit, and what it made to where it is needed.
  absl::Status CheckWork(int32_t u, int32_t m) const {
    const Work& work = work_[m][index_.place[u]];
    if (work.forward < 0) return EndError(absl::StrCat("unit ", u, " never ran microbatch ", m, " forward"));
    if (u != head() && !Held(u + 1)) MOTLEY_RETURN_IF_ERROR(AllSent("output", u, sent_activations_, u + 1, m));
    if (!training()) return absl::OkStatus();
    if (work.backward < 0) return EndError(absl::StrCat("unit ", u, " never ran microbatch ", m, " backward"));
    return u == 0 || Held(u - 1) ? absl::OkStatus() : AllSent("input's gradient", u, sent_gradients_, u, m);
  }
  absl::Status AllSent(const char* what, int32_t of, const HandedSamples& handed, int32_t unit, int32_t m) const {
    const int64_t left = program_.microbatches[m].samples - handed.At(unit, m).samples;
    if (left == 0) return absl::OkStatus();
    return EndError(absl::StrCat("unit ", of, "'s ", what, " of ", left, " samples of microbatch ", m, " is never sent"));
  }

  const Program& program_;
  const ProgramOrder order_;
  std::vector<ParameterBuffer> parameters_;
  std::vector<GradientBuffer> gradients_;
  std::vector<std::vector<Work>> work_;  // [microbatch][place of the unit]
  const ProgramIndex index_;
  std::vector<bool> reduced_;  // by unit
  HandedSamples sent_activations_, received_activations_, sent_gradients_, received_gradients_;
  int at_ = 0;
  int tied_ = -1;  // whether the head names a tied buffer; -1 = no head yet
  int last_loss_ = -1, scalars_ = -1, optimizer_ = -1;
};

}  // namespace

absl::Status Validate(const Program& program) {
  MOTLEY_RETURN_IF_ERROR(ValidateHeader(program));
  return Validator(program).Run();
}

}  // namespace motley
