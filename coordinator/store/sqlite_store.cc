#include "coordinator/store/sqlite_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "coordinator/store/json.h"
#include "coordinator/store/rebuild.h"

namespace motley::coordinator {
namespace {

absl::StatusOr<int64_t> Newest(const Database& database, TableId table) {
  Statement newest = database.Prepare(absl::StrCat("SELECT COALESCE(MAX(sequence), 0) FROM ", Spec(table).name));
  MOTLEY_RETURN_IF_ERROR(newest.Step().status());
  return newest.Integer(0);
}

}  // namespace

SqliteStore::SqliteStore(StateFolder folder, OpenedDatabase opened)
    : folder_(std::move(folder)), database_(std::move(opened.database)), ledger_(*database_) {
  ledger_.Reset(opened.state);
}

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& folder) {
  MOTLEY_ASSIGN_OR_RETURN(StateFolder state, StateFolder::Lock(folder));
  MOTLEY_ASSIGN_OR_RETURN(OpenedDatabase opened, OpenDatabase(state));
  OpenedDatabase facts;
  facts.said = opened.said, facts.unsaid = opened.unsaid;
  facts.lost_commits = opened.lost_commits, facts.count_from = opened.count_from;
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(state), std::move(opened)));
  MOTLEY_RETURN_IF_ERROR(store->Begin(facts));
  return store;
}

absl::Status SqliteStore::Begin(OpenedDatabase& opened) {
  MOTLEY_ASSIGN_OR_RETURN(newest_event_, Newest(*database_, TableId::kEvents));
  MOTLEY_ASSIGN_OR_RETURN(newest_profile_, Newest(*database_, TableId::kProfiles));
  for (const StoreFinding& finding : opened.said) LogError(finding.text);
  for (const StoreFinding& finding : opened.unsaid) LogError(finding.text);
  findings_ = static_cast<int64_t>(opened.said.size() + opened.unsaid.size());
  if (!opened.unsaid.empty()) {
    Batch batch;
    batch.count_from = opened.count_from;
    if (opened.lost_commits > 0) {
      MOTLEY_ASSIGN_OR_RETURN(batch.jobs, LoadJobs());
      std::erase_if(batch.jobs, [](const JobRecord& job) { return IsFinal(job.phase); });
      for (JobRecord& job : batch.jobs) job.epoch = Epoch(job.epoch.value() + EpochRaise(opened.lost_commits));
    }
    for (const StoreFinding& finding : opened.unsaid) batch.events.push_back(EventFor(finding, 0));
    // The mark file is not opened yet: until this commit is there it says what it said.
    MOTLEY_RETURN_IF_ERROR(Transact([&] { return Write(batch); }));
  }
  MOTLEY_ASSIGN_OR_RETURN(mark_file_, MarkFile::Open(folder_.Mark()));
  return mark_file_->Write(mark());
}

template <typename F>
absl::Status SqliteStore::Transact(F write) {
  MOTLEY_RETURN_IF_ERROR(database_->Execute("BEGIN IMMEDIATE"));
  const LedgerState before = ledger_.state();
  const int64_t newest_event = newest_event_, newest_profile = newest_profile_;
  absl::Status status = write();
  if (status.ok()) status = ledger_.Seal();
  if (status.ok()) status = database_->Execute("COMMIT");
  if (!status.ok()) {
    // After a failed COMMIT (full disk) the transaction may still be open.
    database_->Execute("ROLLBACK").IgnoreError();
    ledger_.Reset(before);
    newest_event_ = newest_event, newest_profile_ = newest_profile;
    return status;
  }
  if (mark_file_ == nullptr) return absl::OkStatus();
  // What was committed is committed: the mark is a witness, and the next one may be written again.
  const absl::Status marked = mark_file_->Write(mark());
  if (!marked.ok() && !mark_failed_) LogError(std::string(marked.message()));
  mark_failed_ = !marked.ok();
  return absl::OkStatus();
}

absl::Status SqliteStore::Commit(Batch& batch) {
  return Transact([&] { return Write(batch); });
}

absl::Status SqliteStore::Write(Batch& batch) {
  ledger_.SkipTo(batch.count_from);
  for (const JobRecord& job : batch.jobs) MOTLEY_RETURN_IF_ERROR(ledger_.Put(TableId::kJobs, ToRow(job)));
  for (const EpochRow& row : batch.epochs) MOTLEY_RETURN_IF_ERROR(WriteEpoch(row));
  for (const PlanRow& plan : batch.plans) MOTLEY_RETURN_IF_ERROR(ledger_.Put(TableId::kPlans, ToRow(plan)));
  for (EventRecord& event : batch.events) {
    event.sequence = ++newest_event_;
    MOTLEY_RETURN_IF_ERROR(ledger_.Put(TableId::kEvents, ToRow(event)));
  }
  for (const DrainRow& drain : batch.drains) {
    const Row row = {drain.node.value()};
    MOTLEY_RETURN_IF_ERROR(drain.drained ? ledger_.Put(TableId::kDrained, row) : ledger_.Remove(TableId::kDrained, row));
  }
  MOTLEY_RETURN_IF_ERROR(ForgetProfiles(batch.unmeasured));
  for (const auto& [profile, speed] : batch.compute_profiles)
    MOTLEY_RETURN_IF_ERROR(ledger_.Put(TableId::kProfiles, ToRow(profile, speed, ++newest_profile_)));
  for (const CollectiveProfile& profile : batch.collective_profiles)
    MOTLEY_RETURN_IF_ERROR(ledger_.Put(TableId::kProfiles, ToRow(profile, ++newest_profile_)));
  for (const JobId& job : batch.forgotten) MOTLEY_RETURN_IF_ERROR(Forget(job));
  for (const HistoryRow& row : batch.histories) {
    MOTLEY_RETURN_IF_ERROR(ledger_.Put(TableId::kHistories, {row.job.value(), row.bytes}));
  }
  for (const UnwantedRow& row : batch.unwanted) MOTLEY_RETURN_IF_ERROR(ledger_.Put(TableId::kUnwanted, ToRow(row)));
  for (const UnwantedRow& row : batch.gone) MOTLEY_RETURN_IF_ERROR(ledger_.Remove(TableId::kUnwanted, ToRow(row)));
  return WriteMembers(batch);
}

absl::Status SqliteStore::WriteMembers(const Batch& batch) {
  for (const AuthorityRecord& authority : batch.authorities)
    MOTLEY_RETURN_IF_ERROR(ledger_.Put(TableId::kAuthorities, ToRow(authority)));
  for (const int64_t number : batch.ended_authorities) MOTLEY_RETURN_IF_ERROR(ledger_.Remove(TableId::kAuthorities, {number}));
  for (const TokenRecord& token : batch.tokens) MOTLEY_RETURN_IF_ERROR(ledger_.Put(TableId::kTokens, ToRow(token)));
  for (const std::string& id : batch.ended_tokens) MOTLEY_RETURN_IF_ERROR(ledger_.Remove(TableId::kTokens, {id}));
  for (const MemberRecord& member : batch.members) MOTLEY_RETURN_IF_ERROR(ledger_.Put(TableId::kMembers, ToRow(member)));
  for (const NodeName& node : batch.ended_members) MOTLEY_RETURN_IF_ERROR(ledger_.Remove(TableId::kMembers, {node.value()}));
  for (const TermRecord& term : batch.terms) MOTLEY_RETURN_IF_ERROR(ledger_.Put(TableId::kTerms, ToRow(term)));
  return absl::OkStatus();
}

absl::Status SqliteStore::WriteEpoch(const EpochRow& row) {
  Statement newest = database_->Prepare("SELECT COALESCE(MAX(epoch), 0) FROM epochs WHERE job = ?");
  MOTLEY_RETURN_IF_ERROR(newest.Bind(row.job.value()).Step().status());
  if (row.epoch.value() <= newest.Integer(0)) {
    return absl::AlreadyExistsError(
        absl::StrCat("generation ", row.epoch.value(), " of job ", row.job.value(), " is not above ", newest.Integer(0)));
  }
  return ledger_.Put(TableId::kEpochs, ToRow(row));
}

absl::Status SqliteStore::ForgetProfiles(const std::vector<DeviceId>& devices) {
  if (devices.empty()) return absl::OkStatus();
  MOTLEY_ASSIGN_OR_RETURN(std::vector<Row> keys,
                          FindKeys(TableId::kProfiles, "SELECT kind, digest FROM profiles WHERE kind = ?", "collective"));
  for (const DeviceId& device : devices) {
    MOTLEY_ASSIGN_OR_RETURN(
        std::vector<Row> own,
        FindKeys(TableId::kProfiles, "SELECT kind, digest FROM profiles WHERE kind = 'compute' AND device = ?", device.value()));
    for (Row& key : own) keys.push_back(std::move(key));
  }
  for (const Row& key : keys) MOTLEY_RETURN_IF_ERROR(ledger_.Remove(TableId::kProfiles, key));
  return absl::OkStatus();
}

absl::Status SqliteStore::Forget(const JobId& job) {
  MOTLEY_RETURN_IF_ERROR(ledger_.Remove(TableId::kJobs, {job.value()}));
  MOTLEY_RETURN_IF_ERROR(ledger_.Remove(TableId::kPlans, {job.value()}));
  MOTLEY_RETURN_IF_ERROR(ledger_.Remove(TableId::kHistories, {job.value()}));
  Statement rows = database_->Prepare("SELECT epoch FROM epochs WHERE job = ?");
  rows.Bind(job.value());
  std::vector<int64_t> epochs;
  while (true) {
    MOTLEY_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) break;
    epochs.push_back(rows.Integer(0));
  }
  for (const int64_t epoch : epochs) MOTLEY_RETURN_IF_ERROR(ledger_.Remove(TableId::kEpochs, {job.value(), epoch}));
  return absl::OkStatus();
}

template <typename F>
absl::Status SqliteStore::ReadRows(TableId table, Statement& rows, F use) {
  const TableSpec& spec = Spec(table);
  Row row;
  while (true) {
    MOTLEY_ASSIGN_OR_RETURN(const bool found, rows.Step());
    if (!found) return absl::OkStatus();
    if (ReadRow(rows, spec, 0, kSchemaVersion, &row).empty()) {
      return absl::DataLossError(absl::StrCat(database_->path(), ": the row ", KeyText(spec, row), " of table ", spec.name,
                                              " is not what was written; start the coordinator again to have it mended"));
    }
    MOTLEY_RETURN_IF_ERROR(use(row));
  }
}

absl::StatusOr<Row> SqliteStore::FindRow(TableId table, Statement& statement) {
  absl::StatusOr<Row> found = absl::NotFoundError("no such row");
  MOTLEY_RETURN_IF_ERROR(ReadRows(table, statement, [&](const Row& row) {
    found = row;
    return absl::OkStatus();
  }));
  return found;
}

absl::StatusOr<std::vector<JobRecord>> SqliteStore::LoadJobs() {
  std::vector<JobRecord> jobs;
  Statement rows = database_->Prepare("SELECT * FROM jobs ORDER BY submitted_unix_ms, id");
  MOTLEY_RETURN_IF_ERROR(ReadRows(TableId::kJobs, rows, [&](const Row& row) -> absl::Status {
    MOTLEY_ASSIGN_OR_RETURN(JobRecord job, JobOf(row));
    jobs.push_back(std::move(job));
    return absl::OkStatus();
  }));
  return jobs;
}

absl::StatusOr<EpochRow> SqliteStore::NewestEpoch(const JobId& job) {
  Statement row = database_->Prepare("SELECT * FROM epochs WHERE job = ? AND ranks != '[]' ORDER BY epoch DESC LIMIT 1");
  const absl::StatusOr<Row> found = FindRow(TableId::kEpochs, row.Bind(job.value()));
  if (absl::IsNotFound(found.status())) return absl::NotFoundError(absl::StrCat("job ", job.value(), " has begun no generation"));
  MOTLEY_RETURN_IF_ERROR(found.status());
  return EpochOf(*found);
}

absl::StatusOr<std::set<DeviceId>> SqliteStore::DevicesOf(const JobId& job) {
  Statement rows = database_->Prepare("SELECT * FROM epochs WHERE job = ?");
  rows.Bind(job.value());
  std::set<DeviceId> devices;
  MOTLEY_RETURN_IF_ERROR(ReadRows(TableId::kEpochs, rows, [&](const Row& row) -> absl::Status {
    MOTLEY_ASSIGN_OR_RETURN(const EpochRow epoch, EpochOf(row));
    for (const EpochRow::Rank& rank : epoch.ranks) devices.insert(rank.device);
    return absl::OkStatus();
  }));
  return devices;
}

absl::StatusOr<PlanRow> SqliteStore::FindPlan(const JobId& job) {
  Statement row = database_->Prepare("SELECT * FROM plans WHERE job = ?");
  const absl::StatusOr<Row> found = FindRow(TableId::kPlans, row.Bind(job.value()));
  if (absl::IsNotFound(found.status())) return absl::NotFoundError(absl::StrCat("job '", job.value(), "' has no plan yet"));
  MOTLEY_RETURN_IF_ERROR(found.status());
  return PlanOf(*found);
}

absl::StatusOr<std::string> SqliteStore::FindHistory(const JobId& job) {
  Statement row = database_->Prepare("SELECT * FROM histories WHERE job = ?");
  const absl::StatusOr<Row> found = FindRow(TableId::kHistories, row.Bind(job.value()));
  if (absl::IsNotFound(found.status())) return std::string();
  MOTLEY_RETURN_IF_ERROR(found.status());
  return TextAt(*found, 1);
}

absl::StatusOr<std::vector<EventRecord>> SqliteStore::EventsAfter(const JobId& job, int64_t sequence, int limit) {
  Statement rows = database_->Prepare(
      absl::StrCat("SELECT * FROM events WHERE sequence > ?", job.empty() ? "" : " AND job = ?", " ORDER BY sequence LIMIT ?"));
  rows.Bind(sequence);
  if (!job.empty()) rows.Bind(job.value());
  rows.Bind(int64_t{limit});
  std::vector<EventRecord> events;
  MOTLEY_RETURN_IF_ERROR(ReadRows(TableId::kEvents, rows, [&](const Row& row) {
    events.push_back(EventOf(row));
    return absl::OkStatus();
  }));
  return events;
}

absl::StatusOr<std::vector<EventRecord>> SqliteStore::NewestEvents(const JobId& job, int limit) {
  Statement before = database_->Prepare("SELECT sequence FROM events WHERE job = ? ORDER BY sequence DESC LIMIT 1 OFFSET ?");
  MOTLEY_ASSIGN_OR_RETURN(const bool found, before.Bind(job.value()).Bind(int64_t{limit}).Step());
  return EventsAfter(job, found ? before.Integer(0) : 0, limit);
}

template <typename Record>
absl::StatusOr<std::vector<Record>> SqliteStore::LoadAll(TableId table, Record (*record_of)(const Row&)) {
  Statement rows = database_->Prepare(absl::StrCat("SELECT * FROM ", Spec(table).name, " ORDER BY 1"));
  std::vector<Record> records;
  MOTLEY_RETURN_IF_ERROR(ReadRows(table, rows, [&](const Row& row) {
    records.push_back(record_of(row));
    return absl::OkStatus();
  }));
  return records;
}

absl::StatusOr<std::vector<NodeName>> SqliteStore::LoadDrained() {
  return LoadAll<NodeName>(TableId::kDrained, [](const Row& row) { return NodeName(TextAt(row, 0)); });
}
absl::StatusOr<std::vector<AuthorityRecord>> SqliteStore::LoadAuthorities() {
  return LoadAll(TableId::kAuthorities, AuthorityOf);
}
absl::StatusOr<std::vector<TokenRecord>> SqliteStore::LoadTokens() { return LoadAll(TableId::kTokens, TokenOf); }
absl::StatusOr<std::vector<MemberRecord>> SqliteStore::LoadMembers() { return LoadAll(TableId::kMembers, MemberOf); }
absl::StatusOr<std::vector<TermRecord>> SqliteStore::LoadTerms() { return LoadAll(TableId::kTerms, TermRecordOf); }

absl::StatusOr<std::vector<UnwantedRow>> SqliteStore::LoadUnwanted() { return LoadAll(TableId::kUnwanted, UnwantedOfRow); }

absl::StatusOr<Row> SqliteStore::FindProfile(const char* kind, const std::string& digest) {
  Statement row = database_->Prepare("SELECT * FROM profiles WHERE kind = ? AND digest = ?");
  absl::StatusOr<Row> found = FindRow(TableId::kProfiles, row.Bind(kind).Bind(digest));
  if (absl::IsNotFound(found.status()))
    return absl::NotFoundError(absl::StrCat("no ", kind, " profile is stored under ", digest));
  return found;
}

absl::StatusOr<ComputeProfile> SqliteStore::FindComputeProfile(const std::string& digest) {
  MOTLEY_ASSIGN_OR_RETURN(const Row row, FindProfile("compute", digest));
  return ComputeProfileFromJson(TextAt(row, 3));
}

absl::StatusOr<CollectiveProfile> SqliteStore::FindCollectiveProfile(const std::string& digest) {
  MOTLEY_ASSIGN_OR_RETURN(const Row row, FindProfile("collective", digest));
  return CollectiveProfileFromJson(TextAt(row, 3));
}

absl::StatusOr<std::map<DeviceId, MeasuredSpeed>> SqliteStore::LoadSpeeds() {
  Statement rows = database_->Prepare("SELECT * FROM profiles WHERE kind = 'compute' ORDER BY sequence");
  std::map<DeviceId, MeasuredSpeed> speeds;
  MOTLEY_RETURN_IF_ERROR(ReadRows(TableId::kProfiles, rows, [&](const Row& row) {
    speeds[DeviceId(TextAt(row, 2))] = SpeedOf(row);
    return absl::OkStatus();
  }));
  return speeds;
}

absl::StatusOr<std::vector<Row>> SqliteStore::FindKeys(TableId table, const std::string& query, const Value& bound) {
  const TableSpec& spec = Spec(table);
  std::vector<Row> keys;
  Statement rows = database_->Prepare(query);
  std::visit([&rows](const auto& value) { rows.Bind(value); }, bound);
  while (true) {
    MOTLEY_ASSIGN_OR_RETURN(const bool found, rows.Step());
    if (!found) return keys;
    Row key;
    for (size_t k = 0; k < spec.keys; ++k) {
      const int column = static_cast<int>(k);
      key.push_back(spec.columns[k].integer ? Value(rows.Integer(column)) : Value(rows.Text(column)));
    }
    keys.push_back(std::move(key));
  }
}

absl::StatusOr<int64_t> SqliteStore::Prune(const Retention& kept, int64_t limit) {
  // The numbers of events have no gaps but at their old end.
  const std::string events =
      absl::StrCat("SELECT sequence FROM events WHERE sequence <= ", newest_event_ - kept.events, " ORDER BY sequence LIMIT ?");
  // Only of jobs that have more: the others are passed over in the index. The newest epoch that started ranks says after a
  // restart which may still live.
  const int64_t kept_epochs = std::max<int64_t>(1, kept.epochs);
  const std::string epochs = absl::StrCat(
      "SELECT job, epoch FROM (SELECT job, epoch, ROW_NUMBER() OVER (PARTITION BY job ORDER BY epoch DESC) AS nth, MAX(CASE WHEN "
      "ranks "
      "!= '[]' THEN epoch END) OVER (PARTITION BY job) AS started FROM epochs WHERE job IN (SELECT job FROM epochs GROUP BY job "
      "HAVING "
      "COUNT(*) > ",
      kept_epochs, ")) WHERE nth > ", kept_epochs, " AND epoch IS NOT started LIMIT ?");
  const std::string profiles =
      absl::StrCat("SELECT kind, digest FROM profiles ORDER BY sequence DESC LIMIT ? OFFSET ", kept.profiles);
  std::vector<std::pair<TableId, Row>> keys;
  for (const auto& [table, query] :
       {std::pair(TableId::kEvents, events), std::pair(TableId::kEpochs, epochs), std::pair(TableId::kProfiles, profiles)}) {
    MOTLEY_ASSIGN_OR_RETURN(std::vector<Row> found, FindKeys(table, query, limit - static_cast<int64_t>(keys.size())));
    for (Row& key : found) keys.emplace_back(table, std::move(key));
  }
  if (keys.empty()) return 0;
  MOTLEY_RETURN_IF_ERROR(Transact([&]() -> absl::Status {
    for (const auto& [table, key] : keys) MOTLEY_RETURN_IF_ERROR(ledger_.Remove(table, key));
    return absl::OkStatus();
  }));
  return static_cast<int64_t>(keys.size());
}

}  // namespace motley::coordinator
