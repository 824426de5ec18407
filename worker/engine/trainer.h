// One epoch on one rank: from the assignment to the last step. Private to the engine.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/data/dataset.h"
#include "common/data/sampling.h"
#include "common/session/assignment.h"
#include "worker/engine/batch_loader.h"
#include "worker/engine/checkpoint_schedule.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/engine.h"
#include "worker/engine/executor.h"
#include "worker/engine/host_tier.h"
#include "worker/engine/lanes/compute_pacer.h"
#include "worker/engine/model/state.h"
#include "worker/engine/progress_meter.h"
#include "worker/engine/rank_lanes.h"
#include "worker/engine/shared_proof.h"
#include "worker/engine/transport/communicator.h"
#include "worker/engine/transport/host_link.h"
#include "worker/engine/transport/link_clock.h"

namespace motley::engine {

// A wish from another thread, read at the start of every step.
struct StopRequest {
  std::atomic<bool> stop{false}, save{false};
};

class Trainer {
 public:
  // All references must outlive the trainer.
  Trainer(const RankAssignment& assignment, const EngineOptions& options, DeviceBackend& backend, RankHost& host,
          Communicator& communicator, LinkClock& links, const StopRequest& stop);

  // Opens the data, restores the state, reports ready, trains. Errors: those of Dataset, ShardedState::Create, Executor::Run and
  // SaveCheckpoint; FAILED_PRECONDITION when no token of a step counts and, of Fault::kNode, when the data is not the
  // assignment's.
  absl::StatusOr<RunEnd> Run();

 private:
  absl::Status Prepare();
  struct JobsData {
    const char* key;  // of the job
    const std::string& path;
    double validation_fraction;
    const std::string& digest;
  };
  absl::StatusOr<std::unique_ptr<Dataset>> OpenJobData(const JobsData& which);
  absl::Status ReadData();
  const Dataset& ValidationData() const { return validation_data_ != nullptr ? *validation_data_ : *data_; }
  // That there are as many validation samples as the job asks for, and that something of them counts.
  absl::Status CheckValidationData();
  absl::Status CheckValidationCounts();
  std::vector<const Dataset*> DataSets() const;
  // How late the host was with what links were to move, in all.
  double TransferLateness() const { return communicator_.lateness_seconds() + host_link_.lateness_seconds(); }
  // That all ranks were given programs of one plan.
  absl::Status AgreeOnPrograms();
  absl::StatusOr<StepOutcome> Step(int64_t step, StepResult& result);
  // Once where they have grown.
  void SayAllocationRetries(int64_t step);
  // What a step's numbers say of the loss scale.
  void TakeVerdict(const StepOutcome& outcome, StepResult& result);
  absl::Status Evaluate(int64_t steps_done, StepResult& result);
  absl::Status Save(int64_t steps_done);
  // One that cannot be written now ends nothing: it is said, and tried again later.
  absl::Status SaveAndGoOn(int64_t steps_done);
  // What would be lost otherwise: tried again with pauses.
  absl::Status SaveAtLast(int64_t steps_done);
  absl::Status SaveWhatIsDue(int64_t steps_done, bool last, const StepScalars& agreed);
  // By all ranks, which come to the same: whether there is a proof of the data, without which nothing is saved.
  absl::StatusOr<bool> MaySave(int64_t steps_done, bool last, const StepScalars& agreed);
  // What the device holds beside the job's tensors once all is connected and rehearsed, where the plan counted less; else 0.
  int64_t ContextAbovePlan() const;
  bool EvaluationDue(int64_t steps_done) const;

  const RankAssignment& assignment_;
  const EngineOptions& options_;
  DeviceBackend& backend_;
  RankHost& host_;
  Communicator& communicator_;
  const StopRequest& stop_;
  SystemClock clock_;
  ComputePacer pacer_;
  ProgressMeter progress_;
  std::unique_ptr<Dataset> data_, validation_data_;  // the latter of data.validation_path, or null
  SharedProof proof_;
  std::unique_ptr<SampleOrder> order_;
  std::unique_ptr<BatchLoader> batches_;
  HostLink host_link_;
  std::unique_ptr<HostTier> host_tier_;
  std::unique_ptr<ShardedState> state_;
  std::unique_ptr<Executor> executor_;
  CheckpointSchedule schedule_;  // rank 0 asks it
  int64_t saved_step_ = -1;
  int64_t library_bytes_ = 0;       // that libraries took of the allocator in the rehearsal and keep
  int64_t allocation_retries_ = 0;  // said, or made before the first step
  // Last: their threads end before what they use.
  std::unique_ptr<RankLanes> lanes_;
};

}  // namespace motley::engine
