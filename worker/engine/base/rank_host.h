// What an engine tells and asks its surroundings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/memory_by_purpose.h"
#include "common/program/step_spans.h"
#include "common/session/transport_use.h"

namespace motley::engine {

struct StepResult {
  int64_t step = 0;  // optimizer steps done, 1-based
  double loss = 0;   // mean over the global batch's valid tokens
  double grad_norm = 0;
  double lr = 0;
  bool has_validation_loss = false;
  double validation_loss = 0;
  std::optional<double> validation_bits_per_byte;  // where the data are text and say its bytes
  double step_seconds = 0;
  int64_t peak_memory_bytes = 0;  // of the device
  int64_t held_memory_bytes = 0;  // of it when the step began: state, buffers, slots
  int64_t host_memory_bytes = 0;  // of the host's memory, for what waits there
  MeasuredMemory memory;          // of the device, by purpose
  double lateness_seconds = 0;    // how late the host made emulated instructions, in all
  double loss_scale = 0;          // of float16: what the loss was multiplied by; 0 = nothing
  bool skipped = false;           // not applied, for an overflow; what was not finite is 0
  LaneSeconds lanes;
  std::vector<InstructionSpan> spans;  // by instruction of the training program, since the step's begin
};

// What an engine asks of its surroundings. Implemented by the rank's session (and by fakes). Thread-safe.
class RankHost {
 public:
  virtual ~RankHost() = default;
  // Rendezvous keys, scoped by job and epoch by the host.
  virtual absl::Status KvSet(const std::string& key, const std::string& value) = 0;
  virtual absl::StatusOr<std::string> KvGet(const std::string& key, absl::Duration timeout) = 0;  // waits for the key
  // Asked just before every write that outlives the rank; `purpose` is for people: "publish step-00000040-gen-3".
  // FAILED_PRECONDITION: a newer epoch exists.
  virtual absl::Status ConfirmEpochIsNewest(int64_t step, const std::string& purpose) = 0;
  // The same before a checkpoint on the nodes' disks gets its name: what is to lie beside its manifest (mark_file.h).
  virtual absl::StatusOr<std::string> AskForMark(int64_t step, const std::string& purpose,
                                                 const std::string& manifest_digest) = 0;
  // About to take the first step. `transports`: what this rank says of the epoch's, for all members. `context_bytes`: what the
  // device holds beside tensors, where that is more than the plan counted; else 0.
  virtual void OnReady(const std::vector<TransportUse>& transports, int64_t context_bytes) = 0;
  virtual void OnStep(const StepResult& step) = 0;
  virtual void OnProgress(int64_t step, int64_t instruction, const std::string& doing) = 0;
  virtual void OnCheckpoint(int64_t step, const std::string& folder, int64_t bytes, double seconds) = 0;
  // A checkpoint could not be written; training goes on and it is tried again. `blamed`: whose node is to blame; may be empty.
  virtual void OnCheckpointFailed(int64_t step, const std::string& message, const DeviceId& blamed) = 0;
  virtual void OnLog(const std::string& line) = 0;
};

}  // namespace motley::engine
