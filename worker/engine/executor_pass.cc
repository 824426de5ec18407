#include "worker/engine/executor_pass.h"

#include <ATen/ATen.h>

#include <exception>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/memory_shortage.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/out_of_memory.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/device/nvtx_range.h"
#include "worker/engine/steps_in_turn.h"

namespace motley::engine {

Executor::Pass::Pass(Executor& executor, const Program& program, const StepInput& input)
    : e_(executor),
      program_(program),
      input_(input),
      training_(program.kind == ProgramKind::kTraining),
      flops_(executor.assignment_.model, executor.assignment_.slice, executor.assignment_.config.training.seq_len, program,
             executor.owned_),
      index_(program),
      in_turn_(SteppedInTurn(program)),
      norms_(executor.state_.ranges().size()),
      gradient_uses_(program.gradient_buffers.size()),
      loss_sum_(at::zeros({}, executor.OptionsOf(at::kDouble))),
      finite_(2 * program.num_units, static_cast<int64_t>(program.microbatches.size()),
              executor.OptionsOf(ScalarTypeOf(executor.precision_.master))),
      activations_(program.microbatches.size()),
      carried_(program.microbatches.size()),
      saved_(program.num_units),
      held_(program.num_units, false),
      activations_out_(program),
      activations_in_(program),
      gradients_out_(program),
      gradients_in_(program) {
  for (auto& of_unit : saved_) of_unit.resize(program.microbatches.size());
  for (const int32_t unit : program.units) held_[unit] = true;
  for (const Instruction& instruction : program.instructions) {
    const auto* broadcast = std::get_if<BroadcastActivation>(&instruction.op);
    if (broadcast == nullptr || broadcast->root != program.rank) continue;
    (broadcast->of == Exchanged::kActivation ? activations_in_ : gradients_in_).Share(broadcast->unit, broadcast->microbatch);
  }
}

absl::StatusOr<StepOutcome> Executor::Pass::Run() {
  MOTLEY_ASSIGN_OR_RETURN(outcome_.spans, RunProgram(program_, e_.lanes_.all(), *this));
  return outcome_;
}

absl::Status Executor::Pass::Do(size_t instruction, const Operation& op) {
  const NvtxRange range(e_.wants_ranges_, op);
  if (e_.progress_) e_.progress_(static_cast<int64_t>(instruction), op);
  const auto where = [&] {
    return absl::StrCat(assignment().devices[assignment().rank].value(), ", step ", input_.step + 1, ", instruction ",
                        instruction, " (", std::string(OperationName(op)), ")");
  };
  try {
    // On the lane's thread: a guard is of one. Nobody asks for a graph, and each operator would look for one.
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const absl::Status status = std::visit([&](const auto& o) { return Do(o); }, op);
    // A verdict on the numbers stands by itself.
    if (status.ok() || absl::IsAborted(status)) return status;
    const absl::Status named(status.code(), absl::StrCat(where(), ": ", status.message()));
    if (FaultOf(status) == Fault::kMemory) return WithMemoryShortage(named, {.where = where()});
    return WithFault(named, FaultOf(status));
  } catch (const c10::OutOfMemoryError& error) {
    return OutOfMemory(where(), error);
  } catch (const c10::Error& error) {
    return absl::InternalError(absl::StrCat(where(), ": ", error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(where(), ": ", error.what()));
  }
}

template <typename Op>
absl::Status Executor::Pass::Send(const Op& op, Border& border) {
  const at::Tensor piece = border.Piece(op);
  const auto bytes = static_cast<int64_t>(piece.nbytes());
  MOTLEY_RETURN_IF_ERROR(e_.communicator_.Send(op.peer, piece.const_data_ptr(), bytes));
  e_.backend_.UsedOn(piece, Lane::kSend);
  border.Sent(op);
  return absl::OkStatus();
}

template <typename Op>
absl::Status Executor::Pass::Receive(const Op& op, Border& border) {
  const CountingAs counting(MemoryPurpose::kBoundaries);
  const at::Tensor room = border.Room(op, assignment().config.training.seq_len, assignment().model.hidden_size, Activations());
  return e_.communicator_.Receive(op.peer, room.mutable_data_ptr(), static_cast<int64_t>(room.nbytes()));
}

const UnitArray& Executor::Pass::GradientBuffer(int buffer, int unit) {
  Written(buffer, e_.arrays_.slices().NumElements(unit));
  return e_.gradient_buffers_[buffer];
}

void Executor::Pass::Written(int buffer, int64_t elements) {
  if (!std::exchange(gradient_uses_[buffer].fresh, false)) return;
  e_.gradient_buffers_[buffer].flat().narrow(0, 0, elements).zero_();
}

at::TensorOptions Executor::Pass::Activations() const { return e_.OptionsOf(ScalarTypeOf(e_.precision_.compute)); }

}  // namespace motley::engine
