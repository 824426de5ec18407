#include "worker/engine/executor.h"

#include <ATen/ATen.h>

#include "absl/strings/str_cat.h"
#include "worker/engine/base/out_of_memory.h"
#include "worker/engine/device/nvtx_range.h"
#include "worker/engine/executor_pass.h"

namespace motley::engine {

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
      model_(assignment.model, assignment.config.training.seq_len, precision.compute, backend.tensors(), assignment.slice),
      arrays_(assignment),
      wants_ranges_(NvtxIsWanted()) {}

absl::StatusOr<StepOutcome> Executor::Run(const Program& program, const StepInput& input) {
  try {
    FreeShardsOfGradients(program);
    MakeBuffers(parameter_buffers_, program.parameter_buffers, &RangeState::parameter, precision_.compute);
    MakeBuffers(gradient_buffers_, program.gradient_buffers, &RangeState::gradient, precision_.master);
    MakeSlots(program.slots);
  } catch (const c10::Error& error) {
    communicator_.Abort("a rank had no memory for its buffers");
    return OutOfMemory(absl::StrCat(assignment_.devices[assignment_.rank].value(), ": parameter and gradient buffers and slots"),
                       error);
  }
  return Pass(*this, program, input).Run();
}

}  // namespace motley::engine
