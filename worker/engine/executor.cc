#include "worker/engine/executor.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <exception>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "common/model/operators.h"
#include "worker/engine/lanes/runner.h"
#include "worker/engine/model/optimizer.h"

namespace motley::engine {

// One walk over one program.
class Executor::Pass : public ProgramWork {
 public:
  Pass(Executor& executor, const Program& program, const StepInput& input)
      : e_(executor),
        program_(program),
        input_(input),
        training_(program.kind == ProgramKind::kTraining),
        gradient_fresh_(program.gradient_buffers.size(), true),
        loss_sum_(at::zeros({}, at::kDouble)),
        not_finite_(at::full({}, kFinite, at::kLong)),
        activations_(program.microbatches.size()),
        boundaries_(program.num_units, std::vector<at::Tensor>(program.microbatches.size())),
        saved_(program.num_units) {
    for (auto& of_unit : saved_) of_unit.resize(program.microbatches.size());
  }

  absl::StatusOr<StepOutcome> Run() {
    e_.communicator_.pacer().ResetCounters();
    MOTLEY_RETURN_IF_ERROR(RunProgram(program_, {&e_.compute_, &e_.collective_}, *this));
    outcome_.collective_seconds = e_.communicator_.pacer().busy_seconds();
    return outcome_;
  }

  // The one place where exceptions of the libraries become a Status.
  absl::Status Do(size_t instruction, const Operation& op) override {
    if (e_.progress_) e_.progress_(static_cast<int64_t>(instruction), op);
    const auto where = [&] {
      return absl::StrCat(e_.assignment_.devices[e_.assignment_.rank].value(), ", step ", input_.step + 1, ", instruction ",
                          instruction, " (", std::string(OperationName(op)), "): ");
    };
    try {
      const absl::Status status = std::visit([&](const auto& o) { return Do(o); }, op);
      // A verdict on the numbers stands by itself.
      if (status.ok() || absl::IsAborted(status)) return status;
      return WithFault(absl::Status(status.code(), absl::StrCat(where(), status.message())), FaultOf(status));
    } catch (const c10::OutOfMemoryError& error) {
      return absl::ResourceExhaustedError(absl::StrCat(where(), error.what_without_backtrace()));
    } catch (const c10::Error& error) {
      return absl::InternalError(absl::StrCat(where(), error.what_without_backtrace()));
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat(where(), error.what()));
    }
  }

  std::optional<double> FlopsOf(const Operation& op) const override {
    return std::visit([this](const auto& o) { return Flops(o); }, op);
  }

 private:
  // ---- what a declared speed slows down ----

  std::optional<double> Flops(const Forward& op) const { return UnitFlops(op.unit, op.microbatch, /*backward=*/false); }
  std::optional<double> Flops(const Recompute& op) const { return UnitFlops(op.unit, op.microbatch, /*backward=*/false); }
  std::optional<double> Flops(const Backward& op) const { return UnitFlops(op.unit, op.microbatch, /*backward=*/true); }
  std::optional<double> Flops(const OptimizerStep&) const {
    return kOptimizerFlopsPerElement * static_cast<double>(e_.state_.owned_elements());
  }
  std::optional<double> Flops(const Gather&) const { return std::nullopt; }
  std::optional<double> Flops(const ReduceScatter&) const { return std::nullopt; }
  std::optional<double> Flops(const ReduceScalars&) const { return std::nullopt; }
  std::optional<double> Flops(const ZeroGrad&) const { return std::nullopt; }
  std::optional<double> Flops(const Release&) const { return std::nullopt; }

  // ---- collective lane ----

  absl::Status Do(const Gather& op) {
    const UnitState& own = e_.state_.units()[op.unit];
    at::Tensor whole = UnitOf(e_.parameter_buffers_[op.buffer], op.unit);
    if (own.size() > 0) whole.narrow(0, own.begin, own.size()).copy_(own.parameter);
    return e_.communicator_.AllGatherV(whole.mutable_data_ptr(), e_.dtype_, e_.assignment_.placement[op.unit].bounds);
  }

  absl::Status Do(const ReduceScatter& op) {
    UnitState& own = e_.state_.units()[op.unit];
    at::Tensor whole = UnitOf(e_.gradient_buffers_[op.grad], op.unit);
    MOTLEY_RETURN_IF_ERROR(
        e_.communicator_.ReduceScatterV(whole.mutable_data_ptr(), e_.dtype_, e_.assignment_.placement[op.unit].bounds));
    if (own.size() > 0) own.gradient.add_(whole.narrow(0, own.begin, own.size()));
    gradient_fresh_[op.grad] = true;
    return absl::OkStatus();
  }

  // The only place of a step where numbers come back from the device.
  absl::Status Do(const ReduceScalars&) {
    StepScalars mine;
    mine.loss_sum = loss_sum_.item<double>();
    mine.tokens = tokens_;
    mine.not_finite = not_finite_.item<int64_t>();
    mine.stop = input_.stop;
    mine.save = input_.save;
    mine.checkpoint = input_.checkpoint;
    const std::vector<UnitState>& units = e_.state_.units();
    for (size_t u = 0; training_ && u < units.size(); ++u) {
      const double squared = units[u].size() > 0 ? SquaredNorm(units[u].gradient) : 0;
      if (!std::isfinite(squared))
        mine.not_finite = std::min(mine.not_finite, GradientPosition(static_cast<int>(u), program_.num_units));
      mine.squared_norm += squared;
    }
    MOTLEY_ASSIGN_OR_RETURN(const auto by_rank, e_.communicator_.GatherScalars(mine.ToVector()));
    outcome_.scalars = SummedScalars(by_rank);
    return CheckFinite();
  }

  absl::Status CheckFinite() const {
    const SummedScalars& scalars = outcome_.scalars;
    if (!training_ || scalars.finite()) return absl::OkStatus();
    const bool known = scalars.first_not_finite_rank >= 0;
    return absl::AbortedError(absl::StrCat(
        "step ", input_.step + 1, ": loss or gradient is NaN or infinite, first in ",
        known ? DescribePosition(scalars.sum.not_finite, program_.num_units) : std::string("the sum over ranks"),
        known ? absl::StrCat(" on ", e_.assignment_.devices[scalars.first_not_finite_rank].value()) : std::string(),
        "; the step was not applied. Lower optimizer.lr, raise lr_scheduler.warmup_steps, or set training.max_norm"));
  }

  // ---- compute lane ----

  absl::Status Do(const Forward& op) {
    at::Tensor& activation = activations_[op.microbatch];
    if (op.keep == Keep::kBoundary) boundaries_[op.unit][op.microbatch] = activation;
    Saved* saved = op.keep == Keep::kAll ? &saved_[op.unit][op.microbatch] : nullptr;
    if (op.unit == Head()) {
      const at::Tensor loss = RunHead(op, activation, saved);
      loss_sum_.add_(loss);
      tokens_ += static_cast<double>(input_.batch.targets[op.microbatch].numel());
      NoteFinite(loss, ForwardPosition(op.unit));
      activation = at::Tensor();
    } else {
      activation = RunUnit(op, activation, saved);
      NoteFinite(activation, ForwardPosition(op.unit));
    }
    return absl::OkStatus();
  }

  absl::Status Do(const Recompute& op) {
    at::Tensor input = std::move(boundaries_[op.unit][op.microbatch]);
    boundaries_[op.unit][op.microbatch] = at::Tensor();
    Saved* saved = &saved_[op.unit][op.microbatch];
    if (op.unit == Head()) {
      RunHead(op, input, saved);
    } else {
      RunUnit(op, input, saved);
    }
    return absl::OkStatus();
  }

  absl::Status Do(const Backward& op) {
    at::Tensor& gradient = activations_[op.microbatch];  // of the unit's output; becomes that of its input
    at::Tensor parameters = UnitOf(e_.parameter_buffers_[op.buffer], op.unit);
    at::Tensor gradients = GradientBuffer(op.grad, op.unit);
    Saved& saved = saved_[op.unit][op.microbatch];
    if (op.unit == Head()) {
      at::Tensor tied_gradients = op.tied_grad >= 0 ? GradientBuffer(op.tied_grad, 0) : at::Tensor();
      gradient = e_.model_.HeadBackward(parameters, Tied(op.tied_buffer), saved, input_.batch.targets[op.microbatch], LossScale(),
                                        gradients, tied_gradients);
    } else if (op.unit == 0) {
      e_.model_.EmbeddingBackward(input_.batch.tokens[op.microbatch], gradient, gradients);
      gradient = at::Tensor();
    } else {
      gradient = e_.model_.LayerBackward(parameters, saved, gradient, gradients);
    }
    saved.tensors.clear();
    if (gradient.defined()) NoteFinite(gradient, BackwardPosition(op.unit, program_.num_units));
    return absl::OkStatus();
  }

  absl::Status Do(const ZeroGrad& op) {
    GradientBuffer(op.grad, op.unit);
    return absl::OkStatus();
  }

  absl::Status Do(const Release&) { return absl::OkStatus(); }

  absl::Status Do(const OptimizerStep&) {
    const JobConfig& config = e_.assignment_.config;
    const double clip = ClipCoefficient(outcome_.scalars.norm(), config.training.max_norm);
    for (UnitState& unit : e_.state_.units()) {
      if (unit.size() == 0) continue;
      AdamWStep(config.optimizer, input_.lr, input_.step + 1, clip, unit.gradient, unit.parameter, unit.exp_avg, unit.exp_avg_sq);
      unit.gradient.zero_();
    }
    return absl::OkStatus();
  }

  template <typename Op>
  at::Tensor RunUnit(const Op& op, const at::Tensor& input, Saved* saved) {
    const at::Tensor parameters = UnitOf(e_.parameter_buffers_[op.buffer], op.unit);
    if (op.unit == 0) return e_.model_.EmbeddingForward(parameters, input_.batch.tokens[op.microbatch]);
    return e_.model_.LayerForward(parameters, input, saved);
  }
  template <typename Op>
  at::Tensor RunHead(const Op& op, const at::Tensor& input, Saved* saved) {
    return e_.model_.HeadForward(UnitOf(e_.parameter_buffers_[op.buffer], op.unit), Tied(op.tied_buffer), input,
                                 input_.batch.targets[op.microbatch], saved);
  }

  // ---- helpers ----

  int Head() const { return program_.num_units - 1; }
  at::Tensor UnitOf(const at::Tensor& buffer, int unit) const { return buffer.narrow(0, 0, e_.layout_[unit].num_elements); }
  at::Tensor Tied(int buffer) const { return buffer >= 0 ? UnitOf(e_.parameter_buffers_[buffer], 0) : at::Tensor(); }
  // Zeroed at the first write after a reduction. Its last reduction and this write are ordered by the program.
  at::Tensor GradientBuffer(int buffer, int unit) {
    at::Tensor gradients = UnitOf(e_.gradient_buffers_[buffer], unit);
    if (gradient_fresh_[buffer]) gradients.zero_();
    gradient_fresh_[buffer] = false;
    return gradients;
  }
  double UnitFlops(int unit, int microbatch, bool backward) const {
    const UnitKind kind = e_.layout_[unit].kind;
    const int64_t samples = program_.microbatches[microbatch], seq_len = e_.assignment_.config.training.seq_len;
    return backward ? BackwardFlops(e_.assignment_.model, kind, samples, seq_len)
                    : ForwardFlops(e_.assignment_.model, kind, samples, seq_len);
  }
  // Every token of a text sample is valid: the step's global count is known beforehand.
  double LossScale() const {
    const TrainingSection& training = e_.assignment_.config.training;
    return 1.0 / (static_cast<double>(training.global_batch_size) * static_cast<double>(training.seq_len));
  }
  // A sum is not finite when an element is not. Stays on the device.
  void NoteFinite(const at::Tensor& tensor, int64_t position) {
    if (!training_) return;
    not_finite_ = at::minimum(not_finite_, at::where(at::isfinite(tensor.sum()), kFinite, position));
  }

  Executor& e_;
  const Program& program_;
  const StepInput& input_;
  const bool training_;
  StepOutcome outcome_;               // written by the collective lane, read by the optimizer after it
  std::vector<char> gradient_fresh_;  // by gradient buffer; ordered by the program
  // Compute lane:
  at::Tensor loss_sum_, not_finite_;                 // read by ReduceScalars after the last loss
  double tokens_ = 0;                                // the same
  std::vector<at::Tensor> activations_;              // by microbatch: last output, then the gradient with respect to it
  std::vector<std::vector<at::Tensor>> boundaries_;  // [unit][microbatch]
  std::vector<std::vector<Saved>> saved_;            // [unit][microbatch]
};

namespace {

// Before any work: a thread's first look at the number of threads takes the process's, whatever was set before.
void SetThreads(int threads) {
  at::get_num_threads();
  at::set_num_threads(threads);
}

}  // namespace

Executor::Executor(const RankAssignment& assignment, DType dtype, ShardedState& state, Communicator& communicator,
                   ComputePacer& pacer)
    : assignment_(assignment),
      dtype_(dtype),
      state_(state),
      communicator_(communicator),
      model_(assignment.model, assignment.config.training.seq_len, dtype),
      layout_(ParameterLayout(assignment.model)),
      lanes_(clock_, [&communicator](const absl::Status& error) { communicator.Abort(std::string(error.message())); }),
      // It copies: a team of its own would take the compute lane's cores. First, because the newest number becomes the process's.
      collective_(lanes_, communicator.pacer(), [] { SetThreads(1); }),
      compute_(lanes_, pacer, [&assignment] { SetThreads(assignment.device.threads); }) {}

absl::StatusOr<StepOutcome> Executor::Run(const Program& program, const StepInput& input) {
  const auto options = at::TensorOptions().dtype(dtype_ == DType::kFloat64 ? at::kDouble : at::kFloat);
  const auto grow = [&](std::vector<at::Tensor>& buffers, const std::vector<int64_t>& sizes) {
    if (buffers.size() < sizes.size()) buffers.resize(sizes.size());
    for (size_t b = 0; b < sizes.size(); ++b) {
      if (!buffers[b].defined() || buffers[b].numel() < sizes[b]) buffers[b] = at::zeros({sizes[b]}, options);
    }
  };
  try {
    grow(parameter_buffers_, program.parameter_buffers);
    grow(gradient_buffers_, program.gradient_buffers);
  } catch (const c10::Error& error) {
    communicator_.Abort("a rank had no memory for its buffers");
    return absl::ResourceExhaustedError(absl::StrCat(assignment_.devices[assignment_.rank].value(),
                                                     ": parameter and gradient buffers: ", error.what_without_backtrace()));
  }
  return Pass(*this, program, input).Run();
}

}  // namespace motley::engine
