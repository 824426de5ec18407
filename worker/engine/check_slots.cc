#include "worker/engine/check_slots.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/engine/model/host_areas.h"
#include "worker/engine/steps_in_turn.h"

namespace motley::engine {

int64_t InputBytesOfASample(const RankAssignment& assignment, Precision precision) {
  return assignment.config.training.seq_len * assignment.model.hidden_size * SizeOfBytes(precision.compute);
}

absl::Status CheckSlots(const RankAssignment& assignment, Precision precision, const Program& program) {
  const int64_t sample_bytes = InputBytesOfASample(assignment, precision);
  const HostAreas areas(assignment, precision);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const auto* input = std::get_if<PrefetchActivation>(&program.instructions[i].op);
    const auto* state = std::get_if<PrefetchOptimizer>(&program.instructions[i].op);
    if (input == nullptr && state == nullptr) continue;
    // What the step makes of the state lies there, too.
    const int64_t bytes = input != nullptr ? program.microbatches[static_cast<size_t>(input->microbatch)].samples * sample_bytes
                                           : areas.LayoutOf(state->unit).total();
    const int32_t slot = input != nullptr ? input->slot : state->slot;
    const int64_t room = program.slots[static_cast<size_t>(slot)];
    if (bytes <= room) continue;
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", program.rank, ", instruction ", i, " (",
                                                      std::string(OperationName(program.instructions[i].op)), "): slot ", slot,
                                                      " has ", room, " bytes, what comes into it has ", bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckOffloads(const RankAssignment& assignment, Precision precision) {
  const Program &training = assignment.program, &evaluation = assignment.evaluation;
  const auto refused = [&training](const auto&... why) {
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", training.rank, ": ", why...));
  };
  if (!evaluation.instructions.empty() && evaluation.offloads.parameters != training.offloads.parameters) {
    return refused("its parameters wait in host memory in ", training.offloads.parameters ? "training" : "evaluation",
                   " alone; both programs must be of one plan");
  }
  const std::vector<bool> in_turn = SteppedInTurn(training);
  if (std::find(in_turn.begin(), in_turn.end(), true) == in_turn.end()) return absl::OkStatus();
  if (assignment.config.training.max_norm > 0) {
    return refused(
        "it steps units before the norm of all gradients is known, which cannot clip; set training.max_norm to 0, or "
        "let the plan step at the end");
  }
  if (precision.compute == DType::kFloat16) {
    return refused(
        "it steps units before it is known whether float16 overflowed; let the plan step at the end, or set "
        "training.mixed_precision_param to bfloat16");
  }
  return absl::OkStatus();
}

}  // namespace motley::engine
