// What outlives the coordinator. One write method: a batch is there completely or not at all, and it is on disk when Commit
// returns, so that a reply that follows it is a promise.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/profile.h"
#include "coordinator/state/event.h"
#include "coordinator/state/job.h"
#include "coordinator/state/node.h"

namespace motley::coordinator {

// An epoch that was begun: after a restart it says which processes may still be alive. Only numbers above the newest may be
// added.
struct EpochRow {
  JobId job;
  Epoch epoch;
  int64_t unix_ms = 0;
  struct Rank {
    DeviceId device;
    int64_t incarnation = 0;
  };
  std::vector<Rank> ranks;  // empty: nothing was started under this number
};

struct PlanRow {
  JobId job;
  Epoch epoch;
  std::string plan_json, plan_text, explanation, trace_json;
  std::vector<std::string> programs;  // by rank
};

struct DrainRow {
  NodeName node;
  bool drained = false;
};

struct Batch {
  std::vector<JobRecord> jobs;  // inserted or replaced
  std::vector<EpochRow> epochs;
  std::vector<PlanRow> plans;       // replaces the job's older plan
  std::vector<EventRecord> events;  // Commit fills in their sequence numbers
  std::vector<DrainRow> drains;
  std::vector<std::pair<ComputeProfile, MeasuredSpeed>> compute_profiles;
  std::vector<CollectiveProfile> collective_profiles;
};

// Used on the loop only. Errors: RESOURCE_EXHAUSTED (disk full), DATA_LOSS (the file is damaged), INTERNAL; each names the file.
class Store {
 public:
  virtual ~Store() = default;
  // ALREADY_EXISTS when an epoch number of the batch is not above the job's newest.
  virtual absl::Status Commit(Batch& batch) = 0;
  virtual absl::StatusOr<std::vector<JobRecord>> LoadJobs() = 0;
  // NOT_FOUND when the job never began an epoch with ranks. The newest one.
  virtual absl::StatusOr<EpochRow> NewestEpoch(const JobId& job) = 0;
  virtual absl::StatusOr<PlanRow> FindPlan(const JobId& job) = 0;
  // At most `limit` events after `sequence`, oldest first; of one job, or of all when it is empty.
  virtual absl::StatusOr<std::vector<EventRecord>> EventsAfter(const JobId& job, int64_t sequence, int limit) = 0;
  virtual absl::StatusOr<std::vector<NodeName>> LoadDrained() = 0;
  virtual absl::StatusOr<ComputeProfile> FindComputeProfile(const std::string& digest) = 0;
  virtual absl::StatusOr<CollectiveProfile> FindCollectiveProfile(const std::string& digest) = 0;
  // Of the newest profile of each device.
  virtual absl::StatusOr<std::map<DeviceId, MeasuredSpeed>> LoadSpeeds() = 0;
};

}  // namespace motley::coordinator
