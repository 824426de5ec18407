// What coordinator and worker say to each other, as plain values. rpc/session_messages turns them into proto and back; the
// protocol is described in proto/motley/v1/worker.proto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/assignment.h"
#include "common/ids.h"
#include "common/profile.h"
#include "coordinator/state/step.h"

namespace motley::coordinator {

// ---- to a worker ----
struct StorageCheckCommand {
  JobId job;
  Epoch epoch;
  std::string data_path, checkpoint_folder, token;
  bool write_token = false;
};
struct ProfileCommand {
  JobId job;
  Epoch epoch;
  std::vector<RankAssignment> ranks;  // this worker's
  std::vector<DeviceId> compute_devices;
  bool collectives = false;
};
struct StartCommand {
  std::vector<RankAssignment> ranks;
};
struct StopCommand {
  JobId job;
  Epoch epoch;
  bool save = false;
  std::string reason;
};
struct KvValueCommand {
  JobId job;
  Epoch epoch;
  std::string key, value;
  int rank = 0;
};
struct PublishAnswerCommand {
  JobId job;
  Epoch epoch;
  int64_t step = 0;
  int rank = 0;
  bool allowed = false;
  std::string reason;
};
using WorkerCommand =
    std::variant<StorageCheckCommand, ProfileCommand, StartCommand, StopCommand, KvValueCommand, PublishAnswerCommand>;

// ---- from a worker ----
struct HeartbeatReport {};
struct StorageReport {
  JobId job;
  Epoch epoch;
  std::string error;  // empty = fine
  int64_t data_bytes = 0;
  std::string data_digest;
  bool token_seen = false;
};
struct ProfileReport {
  JobId job;
  Epoch epoch;
  std::string error;
  std::vector<ComputeProfile> compute;
  CollectiveProfile collectives;
};
enum class RankEventKind { kReady, kFinished, kFailed, kDied, kHung, kPeerLost, kNonFinite };
struct RankReport {
  JobId job;
  Epoch epoch;
  int rank = 0;
  DeviceId device;
  RankEventKind kind = RankEventKind::kReady;
  std::string message;
};
struct StepReport {
  JobId job;
  Epoch epoch;
  int rank = 0;
  StepStats stats;
  int64_t peak_memory_bytes = 0;
  double lateness_seconds = 0;
};
struct KvSetReport {
  JobId job;
  Epoch epoch;
  std::string key, value;
};
struct KvGetReport {
  JobId job;
  Epoch epoch;
  std::string key;
  int rank = 0;
};
struct PublishReport {
  JobId job;
  Epoch epoch;
  int64_t step = 0;
  int rank = 0;
};
struct CheckpointReport {
  JobId job;
  Epoch epoch;
  int64_t step = 0;
  std::string folder;
  int64_t bytes = 0;
  double seconds = 0;
};
struct LogReport {
  JobId job;
  std::string source, text;
  int64_t unix_ms = 0;
};
using WorkerReport = std::variant<HeartbeatReport, StorageReport, ProfileReport, RankReport, StepReport, KvSetReport, KvGetReport,
                                  PublishReport, CheckpointReport, LogReport>;

// The way to one worker, for as long as its session lives. Called on the loop only.
class WorkerLink {
 public:
  virtual ~WorkerLink() = default;
  virtual void Send(WorkerCommand command) = 0;
  // Ends the session; the worker sees `status`.
  virtual void Close(absl::Status status) = 0;
};

}  // namespace motley::coordinator
