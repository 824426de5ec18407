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

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/beneath.h"
#include "common/base/clock.h"
#include "common/session/assignment.h"
#include "common/session/data_authentication.h"
#include "common/session/profile.h"
#include "worker/engine/base/rank_host.h"

namespace motley::engine {

class DeviceBackend;

enum class RunEnd { kAllSteps, kStopped };

class Engine {
 public:
  virtual ~Engine() = default;
  // Connects, restores or initialises, trains until config.training.steps or a stop. Non-finite loss or gradient:
  // ABORTED, naming the first unit, the step not applied. A lost peer: UNAVAILABLE. Its device is
  // full: RESOURCE_EXHAUSTED, Fault::kMemory, with what it held (MemoryShortageOf). FaultOf tells what else helps.
  virtual absl::StatusOr<RunEnd> Run(const RankAssignment& assignment) = 0;
  // Finish the step under way, together with all ranks; save if asked; Run returns kStopped.
  virtual void RequestStop(bool save) = 0;
  // Times the units on this device. Alone: no other rank takes part.
  virtual absl::StatusOr<ComputeProfile> ProfileCompute(const RankAssignment& assignment) = 0;
  // Times collectives over size and skew, and hand-overs between nodes and inside them; every rank of the assignment calls it.
  // Rank 0's result counts.
  virtual absl::StatusOr<CollectiveProfile> ProfileCollectives(const RankAssignment& assignment) = 0;
  // Trains two steps of the assignment's program, alone and at the host's speed: for their memory. Its device is full:
  // RESOURCE_EXHAUSTED, Fault::kMemory; the process should end then, as what it freed lies in fragments.
  virtual absl::StatusOr<MemoryTrial> TryMemory(const RankAssignment& assignment) = 0;
};

struct EngineOptions {
  // Shared memory of the node's ranks in which emulated links keep their next free time (link_clock.h); -1 = own.
  int link_clock_fd = -1;
  // Memory in which the node's ranks keep what they have compared of the data (common/data/known_parts.h); -1 = own.
  int known_parts_fd = -1;
  DataAuthentication authentication = DataAuthentication::kBetweenMachines;  // of what ranks send each other
  // Beneath these lies the data; null: wherever its path leads. Must outlive the engine.
  const FileRoots* roots = nullptr;
  // For checkpoints by minutes; null: the system's. Must outlive the engine.
  const Clock* clock = nullptr;
  // In place of the assigned device's own: tests drive devices that are not there. Must outlive the engine.
  DeviceBackend* backend = nullptr;
  // Of a save, with what another node wrote and this one does not see yet: shared file systems are late.
  absl::Duration look_patience = absl::Seconds(5);
  // Waits between attempts at a last checkpoint; empty: really.
  std::function<void(absl::Duration)> pause = {};
  // Called on an instruction's lane when it begins: tests delay lanes with it. From several threads at once.
  std::function<void(int64_t instruction)> before_instruction = {};
  // Called on the thread that compares the rank's data, before it does: tests are slow there.
  std::function<void()> before_proof = {};
  // Whether this rank's gradients are to overflow in a step, for tests. Steps count from 0.
  std::function<bool(int64_t step)> overflows = {};
};

// The NCCL that ranks of this build open on a card, "2.28.9", after a trial on one where there is one. The process should end
// then: what hangs stays. FAILED_PRECONDITION: there is none; UNAVAILABLE: it does not work here; both with the remedy.
absl::StatusOr<std::string> NcclVersion();

// `host` must outlive the engine.
std::unique_ptr<Engine> CreateEngine(RankHost& host, const EngineOptions& options);

}  // namespace motley::engine
