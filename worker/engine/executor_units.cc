// The compute lane: units forward and backward. The optimizer is in executor_steps.cc.
#include <ATen/ATen.h>

#include <utility>

#include "common/model/op_set.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/executor_pass.h"

namespace motley::engine {

void Executor::Pass::Keep(CountedPass& pass, int32_t unit, int32_t microbatch, bool waits) const {
  const Saved& saved = saved_[unit][microbatch];
  for (const auto* tensors : {&saved.tensors, &saved.gradients}) {
    for (const at::Tensor& tensor : *tensors) {
      if (waits) {
        pass.KeepInPlace(tensor, MemoryPurpose::kSaved);
      } else {
        const bool is_input = tensors == &saved.tensors && &tensor == &saved.tensors[kInput];
        pass.Keep(tensor, is_input ? MemoryPurpose::kBoundaries : MemoryPurpose::kSaved);
      }
    }
  }
}

absl::Status Executor::Pass::Do(const Forward& op) {
  CountedPass pass;
  at::Tensor& activation = activations_[op.microbatch];
  const bool first = op.segment != UnitSegment::kMlp && op.segment != UnitSegment::kLoss;
  if (first && op.unit > 0 && !Held(op.unit - 1)) activation = Taken(activations_in_.Take(op.unit, op.microbatch));
  if (op.unit == Head()) {
    RunHead(op, activation);
    pass.Keep(activation, MemoryPurpose::kSaved);  // rows of logits
    Keep(pass, op.unit, op.microbatch);
    return absl::OkStatus();
  }
  activation = RunUnit(op, activation);
  pass.Keep(activation, MemoryPurpose::kBoundaries);
  Keep(pass, op.unit, op.microbatch);
  NoteFinite(activation, ForwardPosition(op.unit), op.microbatch);
  if (Summed() || op.segment == UnitSegment::kAttention || Held(op.unit + 1)) return absl::OkStatus();
  activations_out_.Put(op.unit + 1, op.microbatch, std::exchange(activation, at::Tensor()));
  return absl::OkStatus();
}

template <typename Op>
void Executor::Pass::Carry(const Op& op, const at::Tensor& past) {
  if (Summed()) carried_[op.microbatch] = past;
}

at::Tensor Executor::Pass::RunUnit(const Forward& op, const at::Tensor& input) {
  const UnitArray& parameters = e_.parameter_buffers_[op.buffer];
  if (op.unit == 0) return e_.model_.EmbeddingForward(parameters, input_.batch.tokens[op.microbatch], BordersOf(op.microbatch));
  Carry(op, input);
  Saved& saved = saved_[op.unit][op.microbatch];
  const OpSet recomputed = op.keep == Keep::kBoundary ? OpSet::OfProgram(op.operators) : OpSet::None();
  const ValueSet kept = op.keep == Keep::kNothing ? ValueSet() : e_.model_.KeptFor(recomputed);
  saved.kind = e_.model_.shape().KindOf(op.unit - 1);
  mark_ = MarkOf(ForwardPosition(op.unit), op.microbatch);
  at::Tensor output = e_.model_.LayerForward(op.segment, parameters, input, saved, kept, DocumentsOf(op.microbatch), &mark_);
  if (op.keep == Keep::kNothing && op.segment != UnitSegment::kAttention) saved = {};
  return output;
}

void Executor::Pass::RunHead(const Forward& op, at::Tensor& activation) {
  const UnitArray &parameters = e_.parameter_buffers_[op.buffer], &tied = Tied(op.tied_buffer);
  const at::Tensor &targets = input_.batch.targets[op.microbatch], &trained = TrainedOf(op.microbatch);
  Saved& saved = saved_[op.unit][op.microbatch];
  switch (op.segment) {
    case UnitSegment::kLogits:
      activation = e_.model_.HeadLogits(parameters, tied, activation, targets, op.keep, saved, trained);
      return;
    case UnitSegment::kLoss:
      CountLoss(op.microbatch, e_.model_.HeadLoss(Taken(activation), op.keep, saved, trained));
      break;
    default:
      if (op.keep == Keep::kNothing) {
        CountLoss(op.microbatch, e_.model_.HeadForward(parameters, tied, activation, targets, trained));
      } else {
        UnitModel::HeadKeep(activation, saved);
      }
  }
  activation = at::Tensor();
}

// A loss that is not finite is the forward's, wherever it is made.
void Executor::Pass::CountLoss(int32_t microbatch, const at::Tensor& loss) {
  NoteFinite(loss, ForwardPosition(Head()), microbatch);
  if (!assignment().slice.leads()) return;  // the same loss of the same tokens
  loss_sum_.add_(loss);
  tokens_ += static_cast<double>(input_.batch.TrainedTokens(microbatch));
}

absl::Status Executor::Pass::Do(const Recompute& op) {
  CountedPass pass;
  Saved& saved = saved_[op.unit][op.microbatch];
  const UnitArray& parameters = e_.parameter_buffers_[op.buffer];
  if (op.unit == Head()) {
    // The whole head's backward makes all of it in any case.
    if (Summed()) e_.model_.HeadRecompute(parameters, Tied(op.tied_buffer), saved);
  } else if (op.unit > 0) {
    e_.model_.LayerRecompute(parameters, saved, OpSet::OfProgram(op.operators), DocumentsOf(op.microbatch));
  }
  Keep(pass, op.unit, op.microbatch);
  return absl::OkStatus();
}

template <typename Op>
at::Tensor Executor::Pass::BackwardOfHead(const Op& op, const UnitArray& sum, const UnitArray& tied_sum) {
  HeadGradient made = e_.model_.HeadBackward(e_.parameter_buffers_[op.buffer], Tied(op.tied_buffer),
                                             saved_[op.unit][op.microbatch], input_.batch.targets[op.microbatch], LossWeight(),
                                             sum, tied_sum, TrainedOf(op.microbatch), program_.head_rows);
  if (made.loss.defined()) CountLoss(op.microbatch, made.loss);
  return std::move(made.input);
}

template <typename Op>
at::Tensor& Executor::Pass::OutputGradient(const Op& op) {
  at::Tensor& gradient = activations_[op.microbatch];
  const bool first = op.segment != UnitSegment::kAttention;
  if (first && op.unit != Head() && !Held(op.unit + 1)) gradient = Taken(gradients_in_.Take(op.unit + 1, op.microbatch));
  return gradient;
}

template <typename Op>
void Executor::Pass::HandOverGradient(const Op& op, at::Tensor& gradient) {
  if (gradient.defined()) NoteFinite(gradient, BackwardPosition(op.unit, program_.num_units), op.microbatch);
  if (Summed() || op.segment == UnitSegment::kMlp || op.unit == 0 || Held(op.unit - 1)) return;
  gradients_out_.Put(op.unit, op.microbatch, std::exchange(gradient, at::Tensor()));
}

absl::Status Executor::Pass::Do(const Backward& op) {
  CountedPass pass;
  at::Tensor& gradient = OutputGradient(op);
  const UnitArray& parameters = e_.parameter_buffers_[op.buffer];
  const UnitArray& gradients = GradientBuffer(op.grad, op.unit);
  Saved& saved = saved_[op.unit][op.microbatch];
  if (op.unit == Head()) {
    gradient = BackwardOfHead(op, gradients, op.tied_grad >= 0 ? GradientBuffer(op.tied_grad, 0) : none_);
  } else if (op.unit == 0) {
    e_.model_.EmbeddingBackward(input_.batch.tokens[op.microbatch], gradient, gradients, BordersOf(op.microbatch));
    gradient = at::Tensor();
  } else {
    Carry(op, gradient);
    mark_ = MarkOf(BackwardPosition(op.unit, program_.num_units), op.microbatch);
    gradient = e_.model_.LayerBackward(parameters, saved, gradient, gradients, op.segment, DocumentsOf(op.microbatch), &mark_);
  }
  pass.Keep(gradient, MemoryPurpose::kBoundaries);
  Keep(pass, op.unit, op.microbatch);
  HandOverGradient(op, gradient);
  return absl::OkStatus();
}

absl::Status Executor::Pass::Do(const BackwardInput& op) {
  CountedPass pass;
  at::Tensor& gradient = OutputGradient(op);
  const UnitArray& parameters = e_.parameter_buffers_[op.buffer];
  Saved& saved = saved_[op.unit][op.microbatch];
  if (op.unit == Head()) {
    const UnitArray &sum = HeadsSum(head_sum_, op.unit), &tied_sum = op.tied_buffer >= 0 ? HeadsSum(tied_sum_, 0) : none_;
    pass.Keep(sum.flat(), MemoryPurpose::kSaved);
    pass.Keep(tied_sum.flat(), MemoryPurpose::kSaved);
    gradient = BackwardOfHead(op, sum, tied_sum);
  } else if (op.unit == 0) {
    saved.gradients = {std::exchange(gradient, at::Tensor())};
  } else {
    Carry(op, gradient);
    mark_ = MarkOf(BackwardPosition(op.unit, program_.num_units), op.microbatch);
    gradient = e_.model_.LayerBackwardInput(parameters, saved, gradient, op.segment, DocumentsOf(op.microbatch), &mark_);
    if (op.segment != UnitSegment::kMlp) LeaveSlot(saved);
  }
  pass.Keep(gradient, MemoryPurpose::kBoundaries);
  Keep(pass, op.unit, op.microbatch, /*waits=*/true);
  HandOverGradient(op, gradient);
  return absl::OkStatus();
}

absl::Status Executor::Pass::Do(const BackwardWeight& op) {
  CountedPass pass;
  const UnitArray& gradients = GradientBuffer(op.grad, op.unit);
  Saved& saved = saved_[op.unit][op.microbatch];
  if (op.unit == Head()) {
    const auto add = [](const UnitArray& to, const UnitArray& sum) {
      if (sum.defined()) to.flat().narrow(0, 0, sum.flat().numel()).add_(sum.flat());
    };
    add(gradients, head_sum_);
    add(op.tied_grad >= 0 ? GradientBuffer(op.tied_grad, 0) : none_, tied_sum_);
    head_sum_ = tied_sum_ = UnitArray();
    saved = {};
  } else if (op.unit == 0) {
    e_.model_.EmbeddingBackward(input_.batch.tokens[op.microbatch], saved.gradients.front(), gradients, BordersOf(op.microbatch));
    saved = {};
  } else {
    e_.model_.LayerBackwardWeight(saved, gradients, op.segment);
    Keep(pass, op.unit, op.microbatch, /*waits=*/true);
  }
  return absl::OkStatus();
}

absl::Status Executor::Pass::Do(const ZeroGrad& op) {
  GradientBuffer(op.grad, op.unit);
  return absl::OkStatus();
}

const UnitArray& Executor::Pass::HeadsSum(UnitArray& sum, int unit) const {
  if (!sum.defined()) {
    sum = at::zeros({e_.arrays_.slices().NumElements(unit)}, e_.OptionsOf(ScalarTypeOf(e_.precision_.master)));
  }
  return sum;
}

// The step's count is known before it starts, so no microbatch waits for another's.
double Executor::Pass::LossWeight() const {
  return input_.loss_scale / static_cast<double>(std::max<int64_t>(1, input_.trained_tokens));
}

const Documents* Executor::Pass::DocumentsOf(int32_t microbatch) {
  const Borders* const borders = BordersOf(microbatch);
  if (borders == nullptr) return nullptr;
  if (std::exchange(documents_of_, microbatch) != microbatch) documents_ = e_.model_.DocumentsOf(*borders);
  return &documents_;
}

FiniteMark Executor::Pass::MarkOf(int64_t position, int32_t microbatch) const {
  return training_ ? finite_.MarkOf(position, microbatch) : FiniteMark();
}

void Executor::Pass::NoteFinite(const at::Tensor& made, int64_t position, int32_t microbatch) {
  const bool marked = std::exchange(mark_, FiniteMark()).taken();
  if (training_ && !marked) finite_.Note(made, position, microbatch);
}

}  // namespace motley::engine
