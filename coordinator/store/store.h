// What outlives the coordinator. One write method: a batch is there completely or not at all, and it is on disk when Commit
// returns, so that a reply that follows it is a promise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/session/files.h"
#include "common/session/profile.h"
#include "common/session/session.h"
#include "coordinator/state/event.h"
#include "coordinator/state/job.h"
#include "coordinator/state/member.h"
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
  std::string inputs;                 // GetPlanningInputsResponse as JSON; empty: of an older version
};

struct DrainRow {
  NodeName node;
  bool drained = false;
};

// Files of a deleted job that a node is to delete (epoch/disk_looks).
struct UnwantedRow {
  NodeName node;
  UnwantedFiles files;  // without `kept`
};

// A job's thinned curve (state/history.h), as History::ToBytes makes it.
struct HistoryRow {
  JobId job;
  std::string bytes;
};

struct Batch {
  std::vector<JobRecord> jobs;  // inserted or replaced
  std::vector<EpochRow> epochs;
  std::vector<PlanRow> plans;       // replaces the job's older plan
  std::vector<EventRecord> events;  // Commit fills in their sequence numbers
  std::vector<DrainRow> drains;
  std::vector<std::pair<ComputeProfile, MeasuredSpeed>> compute_profiles;
  std::vector<CollectiveProfile> collective_profiles;
  // Of these devices what was measured of each goes; with any, what was measured of devices together, of which none is named.
  std::vector<DeviceId> unmeasured;
  std::vector<JobId> forgotten;  // jobs that go, with their epochs, plan and history
  std::vector<AuthorityRecord> authorities;
  std::vector<int64_t> ended_authorities;  // by number: they sign and prove nothing more
  std::vector<TokenRecord> tokens;
  std::vector<std::string> ended_tokens;  // by id
  std::vector<MemberRecord> members;
  std::vector<NodeName> ended_members;
  std::vector<TermRecord> terms;
  std::vector<HistoryRow> histories;        // each replaces the job's older one
  std::vector<UnwantedRow> unwanted, gone;  // gone: not to be deleted any more
  int64_t count_from = 0;                   // this commit is counted above it: a higher mark was met
};

// By how much a job's epoch goes up when so many commits are lost: each may have begun one. More than a million nobody has begun,
// and a wrong number must not eat up the epochs.
inline int64_t EpochRaise(int64_t lost_commits) { return std::min<int64_t>(lost_commits, 1'000'000); }

// How much of what only grows is kept.
struct Retention {
  int64_t events = 0, profiles = 0;  // the newest so many
  int64_t epochs = 0;                // of each job
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
  // Devices of the job's epochs, as far back as these are kept.
  virtual absl::StatusOr<std::set<DeviceId>> DevicesOf(const JobId& job) = 0;
  virtual absl::StatusOr<PlanRow> FindPlan(const JobId& job) = 0;
  // Empty: it has none.
  virtual absl::StatusOr<std::string> FindHistory(const JobId& job) = 0;
  // At most `limit` events after `sequence`, oldest first; of one job, or of all when it is empty.
  virtual absl::StatusOr<std::vector<EventRecord>> EventsAfter(const JobId& job, int64_t sequence, int limit) = 0;
  // The newest `limit` events of a job, oldest first.
  virtual absl::StatusOr<std::vector<EventRecord>> NewestEvents(const JobId& job, int limit) = 0;
  virtual absl::StatusOr<std::vector<NodeName>> LoadDrained() = 0;
  // The oldest first.
  virtual absl::StatusOr<std::vector<AuthorityRecord>> LoadAuthorities() = 0;
  virtual absl::StatusOr<std::vector<TokenRecord>> LoadTokens() = 0;
  virtual absl::StatusOr<std::vector<MemberRecord>> LoadMembers() = 0;
  // The lowest first.
  virtual absl::StatusOr<std::vector<TermRecord>> LoadTerms() = 0;
  virtual absl::StatusOr<std::vector<UnwantedRow>> LoadUnwanted() = 0;
  virtual absl::StatusOr<ComputeProfile> FindComputeProfile(const std::string& digest) = 0;
  virtual absl::StatusOr<CollectiveProfile> FindCollectiveProfile(const std::string& digest) = 0;
  // Of the newest profile of each device.
  virtual absl::StatusOr<std::map<DeviceId, MeasuredSpeed>> LoadSpeeds() = 0;
  // Removes at most `limit` rows beyond what is kept, oldest first, and returns how many it removed. Never a job's newest epoch.
  virtual absl::StatusOr<int64_t> Prune(const Retention& kept, int64_t limit) = 0;
  // How far the store has got.
  virtual StoreMark mark() const = 0;
  // Of NumberKey: made with the store, the same in all its copies.
  virtual const std::string& secret() const = 0;
  // What was not as it had been written when the store was opened; each is an event, too.
  virtual int64_t findings() const = 0;
};

}  // namespace motley::coordinator
