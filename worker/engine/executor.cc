#include "worker/engine/executor.h"

#include <ATen/ATen.h>

#include <cmath>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "common/model/op_set.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/border.h"
#include "worker/engine/group_owners.h"
#include "worker/engine/instruction_flops.h"
#include "worker/engine/lanes/runner.h"
#include "worker/engine/model/optimizer.h"
#include "worker/engine/operators/half.h"

namespace motley::engine {

// One walk over one program.
class Executor::Pass : public ProgramWork {
 public:
  Pass(Executor& executor, const Program& program, const StepInput& input)
      : e_(executor),
        program_(program),
        input_(input),
        training_(program.kind == ProgramKind::kTraining),
        flops_(executor.assignment_.model, executor.assignment_.config.training.seq_len, program,
               executor.state_.owned_elements()),
        gradient_fresh_(program.gradient_buffers.size(), true),
        loss_sum_(at::zeros({}, executor.OptionsOf(at::kDouble))),
        not_finite_(at::full({}, kFinite, executor.OptionsOf(at::kLong))),
        activations_(program.microbatches.size()),
        saved_(program.num_units),
        held_(program.num_units, false),
        activations_out_(program),
        activations_in_(program),
        gradients_out_(program),
        gradients_in_(program) {
    for (auto& of_unit : saved_) of_unit.resize(program.microbatches.size());
    for (const int32_t unit : program.units) held_[unit] = true;
  }

  absl::StatusOr<StepOutcome> Run() {
    MOTLEY_ASSIGN_OR_RETURN(outcome_.spans, RunProgram(program_, e_.lanes_.all(), *this));
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

  std::optional<double> FlopsOf(const Operation& op) const override { return flops_.Of(op); }

 private:
  // ---- collective lane ----

  absl::Status Do(const Gather& op) {
    at::Tensor whole = UnitOf(e_.parameter_buffers_[op.buffer], op.unit);
    // In a home is what the rank owns, unless it must be cast to the compute type.
    const bool there = program_.parameter_buffers[op.buffer].home_of >= 0 && !e_.precision_.mixed();
    for (const RangeState& own : e_.state_.Of(op.unit)) {
      if (!there) whole.narrow(0, own.begin, own.size()).copy_(own.parameter);
    }
    return e_.communicator_.AllGather(op.group, whole.mutable_data_ptr(), e_.precision_.compute,
                                      OwnersIn(e_.assignment_, program_, op.group, op.unit));
  }

  absl::Status Do(const ReduceScatter& op) {
    at::Tensor whole = UnitOf(e_.gradient_buffers_[op.grad], op.unit);
    MOTLEY_RETURN_IF_ERROR(e_.communicator_.ReduceScatter(op.group, whole.mutable_data_ptr(), e_.precision_.master,
                                                          OwnersIn(e_.assignment_, program_, op.group, op.unit)));
    const bool home = program_.gradient_buffers[op.grad].home_of >= 0;  // the sum stays in it
    for (RangeState& own : e_.state_.Of(op.unit)) {
      if (!home) own.gradient.add_(whole.narrow(0, own.begin, own.size()));
    }
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
    if (training_) AddNorms(mine);
    MOTLEY_ASSIGN_OR_RETURN(const auto by_rank, e_.communicator_.GatherScalars(mine.ToVector()));
    outcome_.scalars = SummedScalars(by_rank);
    return CheckFinite();
  }

  void AddNorms(StepScalars& mine) const {
    const std::vector<RangeState>& owned = e_.state_.ranges();
    if (owned.empty()) return;
    std::vector<at::Tensor> norms;
    for (const RangeState& range : owned) norms.push_back(SquaredNorm(range.gradient));
    const at::Tensor on_host = at::stack(norms).cpu();
    for (size_t i = 0; i < owned.size(); ++i) {
      const double squared = on_host.const_data_ptr<double>()[i];
      if (!std::isfinite(squared)) {
        mine.not_finite = std::min(mine.not_finite, GradientPosition(owned[i].block, program_.num_units));
      }
      mine.squared_norm += squared / (input_.loss_scale * input_.loss_scale);
    }
  }

  // All ranks have the same scalars, so all come to the same verdict.
  absl::Status CheckFinite() {
    const SummedScalars& scalars = outcome_.scalars;
    if (!training_ || scalars.finite()) return absl::OkStatus();
    const bool known = scalars.first_not_finite_rank >= 0;
    const std::string where =
        absl::StrCat(known ? DescribePosition(scalars.sum.not_finite, program_.num_units) : std::string("the sum over ranks"),
                     known ? absl::StrCat(" on ", e_.assignment_.devices[scalars.first_not_finite_rank].value()) : std::string());
    if (input_.may_skip) {
      outcome_.overflow = where;
      return absl::OkStatus();
    }
    const bool half = e_.precision_.compute == DType::kFloat16;
    return absl::AbortedError(absl::StrCat(
        "step ", input_.step + 1, ": loss or gradient is NaN or infinite, first in ", where, "; the step was not applied. ",
        half
            ? "Float16 overflows even with a loss scale of 1: set training.mixed_precision_param to bfloat16 or float32, or lower"
            : "Lower",
        " optimizer.lr, raise lr_scheduler.warmup_steps, or set training.max_norm"));
  }

  // ---- what the engine does not run yet: RunsInEngine has refused the program ----

  template <typename Op, typename... Refused>
  static constexpr bool kIsOneOf = (std::is_same_v<Op, Refused> || ...);
  template <typename Op>
  static constexpr bool kIsRefused = kIsOneOf<Op, Broadcast, AllReduce, AllReduceActivation, BroadcastActivation,
                                              OffloadActivation, PrefetchActivation, PrefetchState, OffloadState>;
  template <typename Op>
    requires kIsRefused<Op>
  absl::Status Do(const Op&) {
    return absl::UnimplementedError("the engine does not run this operation yet");
  }

  // ---- send and receive lanes ----

  absl::Status Do(const SendActivation& op) { return Send(op, activations_out_); }
  absl::Status Do(const SendGradient& op) { return Send(op, gradients_out_); }
  absl::Status Do(const ReceiveActivation& op) { return Receive(op, activations_in_); }
  absl::Status Do(const ReceiveGradient& op) { return Receive(op, gradients_in_); }

  template <typename Op>
  absl::Status Send(const Op& op, Border& border) {
    const at::Tensor piece = border.Piece(op);
    const auto bytes = static_cast<int64_t>(piece.nbytes());
    MOTLEY_RETURN_IF_ERROR(e_.communicator_.Send(op.peer, piece.const_data_ptr(), bytes));
    e_.backend_.UsedOn(piece, Lane::kSend);
    border.Sent(op);
    return absl::OkStatus();
  }
  template <typename Op>
  absl::Status Receive(const Op& op, Border& border) {
    const at::Tensor room = border.Room(op, e_.assignment_.config.training.seq_len, e_.assignment_.model.hidden_size,
                                        e_.OptionsOf(ScalarTypeOf(e_.precision_.compute)));
    return e_.communicator_.Receive(op.peer, room.mutable_data_ptr(), static_cast<int64_t>(room.nbytes()));
  }

  // ---- compute lane ----

  // What the receive lane made.
  at::Tensor Taken(at::Tensor whole) const {
    e_.backend_.UsedOn(whole, Lane::kCompute);
    return whole;
  }

  absl::Status Do(const Forward& op) {
    at::Tensor& activation = activations_[op.microbatch];
    if (op.unit > 0 && !Held(op.unit - 1)) activation = Taken(activations_in_.Take(op.unit, op.microbatch));
    if (op.unit == Head()) {
      Saved& saved = saved_[op.unit][op.microbatch];
      if (op.keep == Keep::kBoundary) saved.tensors = {activation};
      const at::Tensor loss = RunHead(op, activation, op.keep == Keep::kAll ? &saved : nullptr);
      loss_sum_.add_(loss);
      tokens_ += static_cast<double>(input_.batch.targets[op.microbatch].numel());
      NoteFinite(loss, ForwardPosition(op.unit));
      activation = at::Tensor();
      return absl::OkStatus();
    }
    activation = RunUnit(op, activation);
    NoteFinite(activation, ForwardPosition(op.unit));
    if (!Held(op.unit + 1)) activations_out_.Put(op.unit + 1, op.microbatch, std::exchange(activation, at::Tensor()));
    return absl::OkStatus();
  }

  absl::Status Do(const Recompute& op) {
    Saved& saved = saved_[op.unit][op.microbatch];
    if (op.unit == Head()) {
      const at::Tensor input = std::move(saved.tensors.front());
      RunHead(op, input, &saved);
    } else if (op.unit > 0) {
      e_.model_.LayerRecompute(UnitOf(e_.parameter_buffers_[op.buffer], op.unit), saved, OpSet::OfProgram(op.operators));
    }
    return absl::OkStatus();
  }

  // What both kinds of a backward begin with: the gradient of the unit's output, which becomes that of its input.
  template <typename Op>
  at::Tensor& OutputGradient(const Op& op) {
    at::Tensor& gradient = activations_[op.microbatch];
    if (op.unit != Head() && !Held(op.unit + 1)) gradient = Taken(gradients_in_.Take(op.unit + 1, op.microbatch));
    return gradient;
  }
  // And end with.
  template <typename Op>
  void HandOverGradient(const Op& op, at::Tensor& gradient) {
    if (gradient.defined()) NoteFinite(gradient, BackwardPosition(op.unit, program_.num_units));
    if (op.unit > 0 && !Held(op.unit - 1)) gradients_out_.Put(op.unit, op.microbatch, std::exchange(gradient, at::Tensor()));
  }

  absl::Status Do(const Backward& op) {
    at::Tensor& gradient = OutputGradient(op);
    at::Tensor parameters = UnitOf(e_.parameter_buffers_[op.buffer], op.unit);
    at::Tensor gradients = GradientBuffer(op.grad, op.unit);
    Saved& saved = saved_[op.unit][op.microbatch];
    if (op.unit == Head()) {
      at::Tensor tied_gradients = op.tied_grad >= 0 ? GradientBuffer(op.tied_grad, 0) : at::Tensor();
      gradient = e_.model_.HeadBackward(parameters, Tied(op.tied_buffer), saved, input_.batch.targets[op.microbatch],
                                        LossWeight(), gradients, tied_gradients);
    } else if (op.unit == 0) {
      e_.model_.EmbeddingBackward(input_.batch.tokens[op.microbatch], gradient, gradients);
      gradient = at::Tensor();
    } else {
      gradient = e_.model_.LayerBackward(parameters, saved, gradient, gradients);
    }
    HandOverGradient(op, gradient);
    return absl::OkStatus();
  }

  absl::Status Do(const BackwardInput& op) {
    at::Tensor& gradient = OutputGradient(op);
    const at::Tensor parameters = UnitOf(e_.parameter_buffers_[op.buffer], op.unit);
    Saved& saved = saved_[op.unit][op.microbatch];
    if (op.unit == Head()) {
      at::Tensor sum = HeadsSum(head_sum_, op.unit), tied_sum = op.tied_buffer >= 0 ? HeadsSum(tied_sum_, 0) : at::Tensor();
      gradient = e_.model_.HeadBackward(parameters, Tied(op.tied_buffer), saved, input_.batch.targets[op.microbatch],
                                        LossWeight(), sum, tied_sum);
    } else if (op.unit == 0) {
      saved.gradients = {std::exchange(gradient, at::Tensor())};
    } else {
      gradient = e_.model_.LayerBackwardInput(parameters, saved, gradient);
    }
    HandOverGradient(op, gradient);
    return absl::OkStatus();
  }

  absl::Status Do(const BackwardWeight& op) {
    at::Tensor gradients = GradientBuffer(op.grad, op.unit);
    Saved& saved = saved_[op.unit][op.microbatch];
    if (op.unit == Head()) {
      if (head_sum_.defined()) gradients.add_(head_sum_);
      at::Tensor tied_gradients = op.tied_grad >= 0 ? GradientBuffer(op.tied_grad, 0) : at::Tensor();
      if (tied_sum_.defined()) tied_gradients.add_(tied_sum_);
      head_sum_ = tied_sum_ = at::Tensor();
    } else if (op.unit == 0) {
      e_.model_.EmbeddingBackward(input_.batch.tokens[op.microbatch], saved.gradients.front(), gradients);
    } else {
      e_.model_.LayerBackwardWeight(saved, gradients);
    }
    saved = {};
    return absl::OkStatus();
  }

  absl::Status Do(const ZeroGrad& op) {
    GradientBuffer(op.grad, op.unit);
    return absl::OkStatus();
  }

  absl::Status Do(const Release&) { return absl::OkStatus(); }

  absl::Status Do(const OptimizerStep&) {
    const JobConfig& config = e_.assignment_.config;
    const double clip = ClipCoefficient(outcome_.scalars.norm(), config.training.max_norm) / input_.loss_scale;
    const int64_t update = input_.step - input_.skipped + 1;
    for (RangeState& own : e_.state_.ranges()) {
      if (outcome_.overflow.empty())
        AdamWStep(config.optimizer, input_.lr, update, clip, own.gradient, own.parameter, own.exp_avg, own.exp_avg_sq);
      own.gradient.zero_();  // reductions add to it
    }
    return absl::OkStatus();
  }

  // The embedding keeps nothing: its tokens are there all step.
  at::Tensor RunUnit(const Forward& op, const at::Tensor& input) {
    const at::Tensor parameters = UnitOf(e_.parameter_buffers_[op.buffer], op.unit);
    if (op.unit == 0) return e_.model_.EmbeddingForward(parameters, input_.batch.tokens[op.microbatch]);
    Saved* saved = op.keep == Keep::kNothing ? nullptr : &saved_[op.unit][op.microbatch];
    const OpSet recomputed = op.keep == Keep::kBoundary ? OpSet::OfProgram(op.operators) : OpSet::None();
    return e_.model_.LayerForward(parameters, input, saved, recomputed);
  }
  template <typename Op>
  at::Tensor RunHead(const Op& op, const at::Tensor& input, Saved* saved) {
    return e_.model_.HeadForward(UnitOf(e_.parameter_buffers_[op.buffer], op.unit), Tied(op.tied_buffer), input,
                                 input_.batch.targets[op.microbatch], saved);
  }

  // ---- helpers ----

  int Head() const { return program_.num_units - 1; }
  bool Held(int unit) const { return held_[unit]; }
  at::Tensor UnitOf(const at::Tensor& buffer, int unit) const { return buffer.narrow(0, 0, e_.layout_[unit].num_elements); }
  at::Tensor Tied(int buffer) const { return buffer >= 0 ? UnitOf(e_.parameter_buffers_[buffer], 0) : at::Tensor(); }
  // Zeroed at the first write after a reduction. Its last reduction and this write are ordered by the program.
  at::Tensor GradientBuffer(int buffer, int unit) {
    at::Tensor gradients = UnitOf(e_.gradient_buffers_[buffer], unit);
    if (gradient_fresh_[buffer]) gradients.zero_();
    gradient_fresh_[buffer] = false;
    return gradients;
  }
  // Where the head's backward by input leaves its weights' gradients: one sum of all microbatches that wait (docs/operators.md).
  at::Tensor HeadsSum(at::Tensor& sum, int unit) const {
    if (!sum.defined()) sum = at::zeros({e_.layout_[unit].num_elements}, e_.OptionsOf(ScalarTypeOf(e_.precision_.master)));
    return sum;
  }
  // Every token of a text sample is valid: the step's global count is known beforehand.
  double LossWeight() const {
    const TrainingSection& training = e_.assignment_.config.training;
    return input_.loss_scale / (static_cast<double>(training.global_batch_size) * static_cast<double>(training.seq_len));
  }
  // A sum is not finite when an element is not. Of half numbers it is taken in float32: in float16 finite ones soon sum up to
  // infinity. Stays on the device.
  void NoteFinite(const at::Tensor& tensor, int64_t position) {
    if (!training_) return;
    const at::Tensor sum = IsHalf(tensor) ? tensor.sum(at::kFloat) : tensor.sum();
    not_finite_ = at::minimum(not_finite_, at::where(at::isfinite(sum), kFinite, position));
  }

  Executor& e_;
  const Program& program_;
  const StepInput& input_;
  const bool training_;
  const InstructionFlops flops_;
  StepOutcome outcome_;               // written by the collective lane, read by the optimizer after it
  std::vector<char> gradient_fresh_;  // by gradient buffer; ordered by the program
  // Compute lane:
  at::Tensor loss_sum_, not_finite_;       // read by ReduceScalars after the last loss
  double tokens_ = 0;                      // the same
  std::vector<at::Tensor> activations_;    // by microbatch: last output, then the gradient with respect to it
  std::vector<std::vector<Saved>> saved_;  // [unit][microbatch]
  at::Tensor head_sum_, tied_sum_;         // of the head, and of the embedding's table that it uses
  std::vector<char> held_;                 // by unit
  Border activations_out_, activations_in_, gradients_out_, gradients_in_;
};

Executor::Executor(const RankAssignment& assignment, Precision precision, DeviceBackend& backend, ShardedState& state,
                   Communicator& communicator, ComputePacer& pacer)
    : assignment_(assignment),
      precision_(precision),
      backend_(backend),
      state_(state),
      communicator_(communicator),
      model_(assignment.model, assignment.config.training.seq_len, precision.compute, backend.tensors()),
      layout_(ParameterLayout(assignment.model)),
      lanes_(assignment.device, backend, communicator, pacer) {}

absl::StatusOr<StepOutcome> Executor::Run(const Program& program, const StepInput& input) {
  try {
    FreeShardsOfGradients(program);
    MakeBuffers(parameter_buffers_, program.parameter_buffers, &RangeState::parameter, precision_.compute);
    MakeBuffers(gradient_buffers_, program.gradient_buffers, &RangeState::gradient, precision_.master);
  } catch (const c10::Error& error) {
    communicator_.Abort("a rank had no memory for its buffers");
    return absl::ResourceExhaustedError(absl::StrCat(assignment_.devices[assignment_.rank].value(),
                                                     ": parameter and gradient buffers: ", error.what_without_backtrace()));
  }
  return Pass(*this, program, input).Run();
}

}  // namespace motley::engine
