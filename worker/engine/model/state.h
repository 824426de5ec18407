// The training state that a rank owns: of every block any number of ranges of parameter, gradient and both Adam moments, each a
// flat tensor of training.dtype, on the device or, of what waits on the host between its uses, a view into the rank's block
// there. Not thread-safe; the program's dependencies order its users.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/beneath.h"
#include "common/checkpoint/checkpoint.h"
#include "common/session/assignment.h"
#include "worker/engine/base/loss_scale.h"
#include "worker/engine/model/host_areas.h"
#include "worker/engine/model/job_base.h"
#include "worker/engine/model/optimizer.h"

namespace motley::engine {

// Owned elements [begin, end) of a block's flat array; not empty.
struct RangeState {
  int32_t block = 0;
  int64_t begin = 0, end = 0;
  // Elements of the block's ranges before this one: where it begins in each part of the unit's area on the host.
  int64_t in_area = 0;
  // No gradient where the training program leaves the unit's sum in a buffer.
  at::Tensor parameter, gradient, exp_avg, exp_avg_sq;
  at::Tensor cast;  // the parameter in the compute type, where it waits on the host and that is another type; else undefined
  std::vector<DecayRun> decay_runs;
  int64_t size() const { return end - begin; }
};

class ShardedState {
 public:
  // Restores assignment.resume_from, a checkpoint or a folder of HuggingFace's (that beneath `roots`; null: wherever it lies), or
  // initialises by the seed when it is empty; what waits on the host in place, in `host`, which must outlive it. The programs
  // have passed Validate. `progress` is called between blocks. FAILED_PRECONDITION: the checkpoint is of another step, model or
  // dtype; DATA_LOSS and others from reading it. May throw c10::Error (out of memory).
  static absl::StatusOr<ShardedState> Create(const RankAssignment& assignment, c10::Device device, const HostAreas& host,
                                             const FileRoots* roots, const std::function<void()>& progress);

  // Of all blocks, in their order; of one.
  std::vector<RangeState>& ranges() { return ranges_; }
  const std::vector<RangeState>& ranges() const { return ranges_; }
  std::span<RangeState> Of(int32_t block);
  // The same on every rank.
  LossScale& loss_scale() { return loss_scale_; }
  const LossScale& loss_scale() const { return loss_scale_; }
  // What the exports of its checkpoints need of the weights that the job began with.
  JobBase& base() const { return *base_; }
  // A step that did not come to its end may have been applied in part: there is no state then that anybody may save.
  void BeginStep() { whole_ = false; }
  void EndStep() { whole_ = true; }
  bool whole() const { return whole_; }
  // What a checkpoint holds of it, to be read while the state lives and nothing runs on the device. Pieces of a device with a
  // memory of its own are copied to the host as they are read.
  std::vector<PieceData> Pieces() const;

 private:
  explicit ShardedState(DType compute) : loss_scale_(compute) {}
  std::vector<RangeState> ranges_;
  bool whole_ = true;
  LossScale loss_scale_;
  std::unique_ptr<JobBase> base_;
};

}  // namespace motley::engine
