// The store in one SQLite file (WAL, synchronous=FULL). Tables in sqlite_store.cc; values that are read back whole are JSON.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/store/sqlite.h"
#include "coordinator/store/store.h"

namespace motley::coordinator {

class SqliteStore : public Store {
 public:
  // `folder` is created if missing. UNAVAILABLE: another coordinator has it; FAILED_PRECONDITION: written by another schema
  // version (names both); DATA_LOSS, PERMISSION_DENIED.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& folder);

  absl::Status Commit(Batch& batch) override;
  absl::StatusOr<std::vector<JobRecord>> LoadJobs() override;
  absl::StatusOr<EpochRow> NewestEpoch(const JobId& job) override;
  absl::StatusOr<PlanRow> FindPlan(const JobId& job) override;
  absl::StatusOr<std::vector<EventRecord>> EventsAfter(const JobId& job, int64_t sequence, int limit) override;
  absl::StatusOr<std::vector<NodeName>> LoadDrained() override;
  absl::StatusOr<ComputeProfile> FindComputeProfile(const std::string& digest) override;
  absl::StatusOr<CollectiveProfile> FindCollectiveProfile(const std::string& digest) override;
  absl::StatusOr<std::map<DeviceId, MeasuredSpeed>> LoadSpeeds() override;

 private:
  explicit SqliteStore(std::unique_ptr<Database> database) : database_(std::move(database)) {}
  absl::Status Migrate(const std::string& path);
  absl::Status Write(Batch& batch);
  absl::Status WriteJob(const JobRecord& job);
  absl::Status WriteEpoch(const EpochRow& row);
  absl::Status WriteEvent(EventRecord& event);
  absl::StatusOr<std::string> FindProfile(const char* kind, const std::string& digest);

  std::unique_ptr<Database> database_;
};

}  // namespace motley::coordinator
