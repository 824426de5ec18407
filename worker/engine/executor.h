// What a program's instructions do, with real tensors. It knows no schedule: what runs when is the program's, and lanes/runner
// walks it. Private to the engine; one Run at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/memory_by_purpose.h"
#include "common/program/program.h"
#include "common/program/step_spans.h"
#include "common/session/assignment.h"
#include "worker/engine/batch.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/host_tier.h"
#include "worker/engine/model/state.h"
#include "worker/engine/model/unit_array.h"
#include "worker/engine/model/unit_model.h"
#include "worker/engine/rank_arrays.h"
#include "worker/engine/rank_lanes.h"
#include "worker/engine/step_scalars.h"
#include "worker/engine/transport/communicator.h"
#include "worker/engine/transport/host_link.h"

namespace motley::engine {

struct StepInput {
  Batch batch;
  int64_t step = 0;     // optimizer steps done before this one
  int64_t skipped = 0;  // of those, without an update
  double lr = 0;
  int64_t trained_tokens = 0;       // of all ranks: the loss is their mean. 0 makes a step that no rank applies
  bool touched = false;             // StepScalars::touched
  double loss_scale = 1;            // gradients are those of the loss times this
  bool may_skip = false;            // what is not finite skips the step instead of failing it
  bool stop = false, save = false;  // this rank's wish, agreed upon with the scalars
  bool checkpoint = false;          // rank 0's: all save after this step and go on
};

struct StepOutcome {
  SummedScalars scalars;
  std::string overflow;  // of a step that was skipped: where, for people
  bool is_void = false;  // of unlike counts of tokens among the ranks, or none (training only): nobody goes on from it
  std::vector<InstructionSpan> spans;  // by instruction of the program, on CLOCK_MONOTONIC
};

class Executor {
 public:
  // Both must outlive the executor: what waits in host memory, and the way there.
  struct HostSide {
    const HostTier& tier;
    HostLink& link;
  };
  // All references must outlive the executor, but for the lanes: they end before it.
  Executor(const RankAssignment& assignment, Precision precision, DeviceBackend& backend, ShardedState& state,
           Communicator& communicator, const HostSide& host, const RankLanes& lanes);

  // ABORTED: loss or gradient not finite and the step may not be skipped (training only): names the first unit and its device,
  // state unchanged, but where units are stepped in turn: a part of it may be. RESOURCE_EXHAUSTED: device memory. UNAVAILABLE: a
  // peer was lost. INTERNAL: an operator failed. After an error the communicator is dead.
  absl::StatusOr<StepOutcome> Run(const Program& program, const StepInput& input);

  // What the step held: each purpose's most, where the device's allocator knows purposes; else state, buffers and slots by their
  // sizes. While nothing runs.
  MeasuredMemory Memory() const;

  // Called from all lanes when an instruction begins, often.
  void set_progress(std::function<void(int64_t instruction, const Operation& op)> progress) { progress_ = std::move(progress); }

 private:
  class Pass;

  // Those that a program has and earlier ones had not. A home of the shard's own type takes the shard in: it is a range of the
  // buffer from then on. What waits on the host stays there.
  void MakeBuffers(std::vector<UnitArray>& buffers, const std::vector<UnitBuffer>& wanted, at::Tensor RangeState::*shard,
                   DType type);
  void MakeSlots(const std::vector<int64_t>& wanted);
  MemoryByPurpose Held() const;

  // Of a tensor on the device.
  at::TensorOptions OptionsOf(at::ScalarType type) const { return at::TensorOptions().dtype(type).device(backend_.tensors()); }

  const RankAssignment& assignment_;
  const Precision precision_;
  DeviceBackend& backend_;
  ShardedState& state_;
  Communicator& communicator_;
  const HostTier& host_tier_;
  HostLink& host_link_;
  const RankLanes& lanes_;
  UnitModel model_;
  const RankArrays arrays_;
  const std::vector<int64_t> owned_;  // elements by unit
  const bool wants_ranges_;           // for Nsight Systems
  std::vector<UnitArray> parameter_buffers_, gradient_buffers_;
  std::vector<at::Tensor> slots_;  // of bytes: for what comes from host memory
  // By unit: whether its home has what the rank owns of it as it was stepped last, in the type that computes, where that is
  // another one: the next step's gather need not cast it. Written by steps' compute lane; an evaluation may fill what is a home.
  std::vector<char> cast_in_home_;
  std::function<void(int64_t, const Operation&)> progress_;
};

}  // namespace motley::engine
