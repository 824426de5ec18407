// The engine's boundary: plain types in, plain types out. torch stays behind it.
//
// One engine drives one device in one process. Run() and the Profile calls block their caller (one thread); RequestStop
// may come from another thread. Any call may end with a Status whose message names the operation; after a failed
// collective the communicator is dead and the engine must be destroyed. A second Run with another assignment is legal
// after the first has returned.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/assignment.h"
#include "common/clock.h"
#include "common/profile.h"

namespace motley::engine {

struct StepResult {
  int64_t step = 0;  // optimizer steps done, 1-based
  double loss = 0;   // mean over the global batch's valid tokens
  double grad_norm = 0;
  double lr = 0;
  bool has_validation_loss = false;
  double validation_loss = 0;
  double step_seconds = 0;
  double busy_seconds = 0;  // compute lane
  double collective_seconds = 0;
  int64_t peak_memory_bytes = 0;
  double lateness_seconds = 0;  // how late the host made emulated instructions, in all
};

// What an engine asks of its surroundings. Implemented by the rank's session (and by fakes). Thread-safe.
class RankHost {
 public:
  virtual ~RankHost() = default;
  // Rendezvous keys, scoped by job and epoch by the host.
  virtual absl::Status KvSet(const std::string& key, const std::string& value) = 0;
  virtual absl::StatusOr<std::string> KvGet(const std::string& key, absl::Duration timeout) = 0;  // waits for the key
  // Asked just before every write that outlives the rank; `purpose` is for people: "publish step-00000040".
  // FAILED_PRECONDITION: a newer epoch exists.
  virtual absl::Status ConfirmEpochIsNewest(int64_t step, const std::string& purpose) = 0;
  virtual void OnReady() = 0;
  virtual void OnStep(const StepResult& step) = 0;
  virtual void OnProgress(int64_t step, int64_t instruction, const std::string& doing) = 0;
  virtual void OnCheckpoint(int64_t step, const std::string& folder, int64_t bytes, double seconds) = 0;
  // A checkpoint could not be written; training goes on and it is tried again.
  virtual void OnCheckpointFailed(int64_t step, const std::string& message) = 0;
  virtual void OnLog(const std::string& line) = 0;
};

enum class RunEnd { kAllSteps, kStopped };

class Engine {
 public:
  virtual ~Engine() = default;
  // Connects, restores or initialises, trains until config.training.steps or a stop. Non-finite loss or gradient:
  // ABORTED, naming the first unit, the step not applied. A lost peer: UNAVAILABLE. FaultOf tells what else helps.
  virtual absl::StatusOr<RunEnd> Run(const RankAssignment& assignment) = 0;
  // Finish the step under way, together with all ranks; save if asked; Run returns kStopped.
  virtual void RequestStop(bool save) = 0;
  // Times the units on this device. Alone: no other rank takes part.
  virtual absl::StatusOr<ComputeProfile> ProfileCompute(const RankAssignment& assignment) = 0;
  // Times collectives over size and skew; every rank of the assignment calls it. Rank 0's result counts.
  virtual absl::StatusOr<CollectiveProfile> ProfileCollectives(const RankAssignment& assignment) = 0;
};

struct EngineOptions {
  // Shared memory of the node's ranks in which emulated links keep their next free time (link_clock.h); -1 = own.
  int link_clock_fd = -1;
  // For checkpoints by minutes; null: the system's. Must outlive the engine.
  const Clock* clock = nullptr;
  // Waits between attempts at a last checkpoint; empty: really.
  std::function<void(absl::Duration)> pause = {};
};

// `host` must outlive the engine.
std::unique_ptr<Engine> CreateEngine(RankHost& host, const EngineOptions& options);

}  // namespace motley::engine
