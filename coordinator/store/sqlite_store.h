// The store in one SQLite file (WAL, synchronous=FULL), with a hash for every row and a count of commits (ledger.h) and a second
// file that remembers the count (mark_file.h). docs/inside/store.md says what is noticed and what is done about it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/store/open.h"
#include "coordinator/store/records.h"
#include "coordinator/store/store.h"

namespace motley::coordinator {

class SqliteStore : public Store {
 public:
  // `folder` is created if missing. What is damaged is mended, what is older is noticed: both are events and counted in
  // findings(). UNAVAILABLE: another coordinator has it; FAILED_PRECONDITION: written by another schema version (names both);
  // DATA_LOSS: nothing in it can be read; PERMISSION_DENIED.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& folder);

  absl::Status Commit(Batch& batch) override;
  absl::StatusOr<std::vector<JobRecord>> LoadJobs() override;
  absl::StatusOr<EpochRow> NewestEpoch(const JobId& job) override;
  absl::StatusOr<std::set<DeviceId>> DevicesOf(const JobId& job) override;
  absl::StatusOr<PlanRow> FindPlan(const JobId& job) override;
  absl::StatusOr<std::string> FindHistory(const JobId& job) override;
  absl::StatusOr<std::vector<EventRecord>> EventsAfter(const JobId& job, int64_t sequence, int limit) override;
  absl::StatusOr<std::vector<EventRecord>> NewestEvents(const JobId& job, int limit) override;
  absl::StatusOr<std::vector<NodeName>> LoadDrained() override;
  absl::StatusOr<std::vector<AuthorityRecord>> LoadAuthorities() override;
  absl::StatusOr<std::vector<TokenRecord>> LoadTokens() override;
  absl::StatusOr<std::vector<MemberRecord>> LoadMembers() override;
  absl::StatusOr<std::vector<TermRecord>> LoadTerms() override;
  absl::StatusOr<std::vector<UnwantedRow>> LoadUnwanted() override;
  absl::StatusOr<ComputeProfile> FindComputeProfile(const std::string& digest) override;
  absl::StatusOr<CollectiveProfile> FindCollectiveProfile(const std::string& digest) override;
  absl::StatusOr<std::map<DeviceId, MeasuredSpeed>> LoadSpeeds() override;
  absl::StatusOr<int64_t> Prune(const Retention& kept, int64_t limit) override;
  StoreMark mark() const override { return ledger_.state().mark; }
  const std::string& secret() const override { return ledger_.state().secret; }
  int64_t findings() const override { return findings_; }

 private:
  SqliteStore(StateFolder folder, OpenedDatabase opened);
  absl::Status Begin(OpenedDatabase& opened);
  // Runs `write` inside a transaction; after an error nothing of it is there.
  template <typename F>
  absl::Status Transact(F write);
  absl::Status Write(Batch& batch);
  absl::Status WriteEpoch(const EpochRow& row);
  absl::Status WriteMembers(const Batch& batch);
  absl::Status Forget(const JobId& job);
  absl::Status ForgetProfiles(const std::vector<DeviceId>& devices);
  // The rows of a SELECT of all columns of `table`, each checked against its hash. DATA_LOSS: one was altered since the start.
  template <typename F>
  absl::Status ReadRows(TableId table, Statement& rows, F use);
  // All rows of `table` in the order of its keys, each by what makes a record of it.
  template <typename Record>
  absl::StatusOr<std::vector<Record>> LoadAll(TableId table, Record (*record_of)(const Row&));
  absl::StatusOr<Row> FindRow(TableId table, Statement& row);  // NOT_FOUND: none
  absl::StatusOr<Row> FindProfile(const char* kind, const std::string& digest);
  // The keys that a query of rows of `table` gives; its one parameter is `bound`.
  absl::StatusOr<std::vector<Row>> FindKeys(TableId table, const std::string& query, const Value& bound);

  StateFolder folder_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<MarkFile> mark_file_;
  Ledger ledger_;
  int64_t findings_ = 0;
  int64_t newest_event_ = 0, newest_profile_ = 0;  // sequence numbers given
  bool mark_failed_ = false;
};

}  // namespace motley::coordinator
