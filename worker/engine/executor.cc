#include "worker/engine/executor.h"

#include <ATen/ATen.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/engine/base/out_of_memory.h"
#include "worker/engine/device/nvtx_range.h"
#include "worker/engine/executor_pass.h"

namespace motley::engine {
namespace {

std::vector<int64_t> OwnedByUnit(const RankAssignment& assignment) {
  std::vector<int64_t> owned;
  for (int32_t unit = 0; unit < assignment.ownership.num_blocks(); ++unit) {
    owned.push_back(assignment.ownership.NumOwned(unit, assignment.rank));
  }
  return owned;
}

}  // namespace

Executor::Executor(const RankAssignment& assignment, Precision precision, DeviceBackend& backend, ShardedState& state,
                   Communicator& communicator, const HostSide& host, const RankLanes& lanes)
    : assignment_(assignment),
      precision_(precision),
      backend_(backend),
      state_(state),
      communicator_(communicator),
      host_tier_(host.tier),
      host_link_(host.link),
      lanes_(lanes),
      model_(assignment.model, assignment.config.training.seq_len, precision.compute, backend.tensors(), assignment.slice,
             backend.kernels()),
      arrays_(assignment),
      owned_(OwnedByUnit(assignment)),
      wants_ranges_(NvtxIsWanted()) {}

absl::StatusOr<StepOutcome> Executor::Run(const Program& program, const StepInput& input) {
  try {
    MakeBuffers(parameter_buffers_, program.parameter_buffers, &RangeState::parameter, precision_.compute);
    MakeBuffers(gradient_buffers_, program.gradient_buffers, &RangeState::gradient, precision_.master);
    MakeSlots(program.slots);
  } catch (const c10::Error& error) {
    communicator_.Abort("a rank had no memory for its buffers");
    return OutOfMemory(absl::StrCat(assignment_.devices[assignment_.rank].value(), ": parameter and gradient buffers and slots"),
                       error);
  }
  if (program.kind != ProgramKind::kTraining) {
    cast_in_home_.assign(cast_in_home_.size(), 0);
    return Pass(*this, program, input).Run();
  }
  cast_in_home_.resize(static_cast<size_t>(program.num_units));
  state_.BeginStep();
  absl::StatusOr<StepOutcome> outcome = Pass(*this, program, input).Run();
  if (outcome.ok() && !outcome->is_void) state_.EndStep();
  return outcome;
}

}  // namespace motley::engine
