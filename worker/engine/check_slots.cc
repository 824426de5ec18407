#include "worker/engine/check_slots.h"

#include <cstddef>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"

namespace motley::engine {

int64_t InputBytesOfASample(const RankAssignment& assignment, Precision precision) {
  return assignment.config.training.seq_len * assignment.model.hidden_size * SizeOfBytes(precision.compute);
}

absl::Status CheckSlots(const RankAssignment& assignment, Precision precision, const Program& program) {
  const int64_t sample_bytes = InputBytesOfASample(assignment, precision);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const auto* comes = std::get_if<PrefetchActivation>(&program.instructions[i].op);
    if (comes == nullptr) continue;
    const int64_t bytes = program.microbatches[static_cast<size_t>(comes->microbatch)].samples * sample_bytes;
    const int64_t room = program.slots[static_cast<size_t>(comes->slot)];
    if (bytes <= room) continue;
    return absl::FailedPreconditionError(absl::StrCat("program of rank ", program.rank, ", instruction ", i, " (",
                                                      std::string(OperationName(program.instructions[i].op)), "): slot ",
                                                      comes->slot, " has ", room, " bytes, what comes into it has ", bytes));
  }
  return absl::OkStatus();
}

}  // namespace motley::engine
