#include "worker/engine/memory_trial.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/program/engine_subset.h"
#include "worker/engine/base/heartbeat.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/batch.h"
#include "worker/engine/check_slice.h"
#include "worker/engine/executor.h"
#include "worker/engine/host_tier.h"
#include "worker/engine/lanes/compute_pacer.h"
#include "worker/engine/model/state.h"
#include "worker/engine/progress_meter.h"
#include "worker/engine/rank_lanes.h"
#include "worker/engine/rehearsal.h"
#include "worker/engine/reserve_transfers.h"
#include "worker/engine/transport/host_link.h"

namespace motley::engine {
namespace {

// The first makes what later ones find: gradients' buffers, handles, kernels.
constexpr int64_t kSteps = 2;
// A step of hundreds of samples on a slow host.
constexpr absl::Duration kLongestTrial = absl::Minutes(30);
constexpr int64_t kStride = 7919;  // from token to token: neighbours differ, as in a text

// Where a rank's batches lie while it trains.
absl::StatusOr<Batch> MadeUpBatch(const RankAssignment& assignment, DeviceBackend& backend) {
  const int64_t seq_len = assignment.config.training.seq_len;
  const WrittenBatch written{.numbers = 2 * BatchSize(assignment) * seq_len, .lengths = {}, .trained = {}};
  at::Tensor numbers;
  const auto make = [&] {
    numbers = at::arange(written.numbers, at::TensorOptions().dtype(at::kLong).device(backend.tensors()));
    numbers.mul_(kStride).remainder_(assignment.model.vocab_size);
    return absl::OkStatus();
  };
  DeviceStream* const stream = backend.StreamOf(Lane::kCompute);
  MOTLEY_RETURN_IF_ERROR(stream == nullptr ? make() : stream->Call(make));
  return ViewsOf(numbers, written, assignment.program, seq_len);
}

StepInput InputOf(const RankAssignment& assignment, const Batch& batch, int64_t step, LossScale& loss_scale) {
  StepInput input;
  input.batch = batch;
  input.step = step;
  input.skipped = loss_scale.skipped_steps();
  input.lr = LearningRate(assignment.config, step);
  input.trained_tokens = BatchSize(assignment) * assignment.config.training.seq_len;
  input.loss_scale = loss_scale.scale();
  input.may_skip = loss_scale.may_skip();
  return input;
}

}  // namespace

absl::StatusOr<MemoryTrial> RunMemoryTrial(const RankAssignment& assignment, DeviceBackend& backend, RankHost& host,
                                           Communicator& communicator, LinkClock& links) {
  const Program& program = assignment.program;
  MOTLEY_RETURN_IF_ERROR(Validate(program));
  MOTLEY_RETURN_IF_ERROR(RunsInEngine(program));
  MOTLEY_RETURN_IF_ERROR(CheckSlice(assignment, program));
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(assignment.config.training));
  ProgressMeter progress(host);
  const Heartbeat heartbeat(
      kStartBeat, [&] { progress.Beat(absl::StrCat("trying ", BatchSize(assignment), " samples")); }, kLongestTrial);

  const SystemClock clock;
  ComputePacer pacer(assignment.device, clock);
  HostLink host_link(assignment.device, assignment.devices, assignment.rank, links);
  std::unique_ptr<HostTier> host_tier;
  std::unique_ptr<ShardedState> state;
  std::unique_ptr<Executor> executor;
  // Last: its threads end before what they use.
  const RankLanes lanes(assignment.device, backend, communicator, host_link, pacer);
  MOTLEY_RETURN_IF_ERROR(Rehearse(assignment, precision, /*rows=*/false, backend, lanes.all()));
  MOTLEY_ASSIGN_OR_RETURN(host_tier, HostTier::Make(assignment, precision, backend.memory()));
  MOTLEY_ASSIGN_OR_RETURN(ShardedState created,
                          ShardedState::Create(assignment, backend.tensors(), host_tier->areas(), /*roots=*/nullptr, [] {}));
  state = std::make_unique<ShardedState>(std::move(created));
  MOTLEY_RETURN_IF_ERROR(ReserveTransfers(assignment, program, precision, communicator));
  MOTLEY_ASSIGN_OR_RETURN(const Batch batch, MadeUpBatch(assignment, backend));
  executor = std::make_unique<Executor>(assignment, precision, backend, *state, communicator,
                                        Executor::HostSide{*host_tier, host_link}, lanes);
  MemoryTrial trial{.samples = BatchSize(assignment)};
  for (int64_t step = 0; step < kSteps; ++step) {
    LossScale& loss_scale = state->loss_scale();
    const int64_t begin_ns = MonotonicNs();
    backend.ResetPeak();
    MOTLEY_ASSIGN_OR_RETURN(const StepOutcome outcome, executor->Run(program, InputOf(assignment, batch, step, loss_scale)));
    outcome.overflow.empty() ? loss_scale.Applied() : loss_scale.Skipped();
    backend.Synchronize();
    trial.seconds = (MonotonicNs() - begin_ns) * 1e-9;
    trial.peak_bytes = backend.PeakBytes();
  }
  return trial;
}

}  // namespace motley::engine
