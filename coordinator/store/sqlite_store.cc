#include "coordinator/store/sqlite_store.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "coordinator/store/json.h"

namespace motley::coordinator {
namespace {

// Raised by whoever changes a table; Migrate then gets the step from the version before.
constexpr int64_t kSchemaVersion = 1;
constexpr int64_t kEventsKept = 200000;

constexpr char kSchema[] = R"sql(
CREATE TABLE jobs ( id TEXT PRIMARY KEY, config TEXT NOT NULL, phase TEXT NOT NULL, reason TEXT NOT NULL, epoch INTEGER NOT
  NULL, step INTEGER NOT NULL, submitted_unix_ms INTEGER NOT NULL, started_unix_ms INTEGER NOT NULL, finished_unix_ms INTEGER
  NOT NULL, last_step TEXT NOT NULL, newest_checkpoint TEXT NOT NULL, predicted_step_seconds TEXT NOT NULL, stop_requested
  INTEGER NOT NULL, data_digest TEXT NOT NULL);
CREATE TABLE epochs (job TEXT NOT NULL, epoch INTEGER NOT NULL, unix_ms INTEGER NOT NULL, ranks TEXT NOT NULL, PRIMARY KEY
  (job, epoch));
CREATE TABLE plans (job TEXT PRIMARY KEY, epoch INTEGER NOT NULL, plan_json TEXT NOT NULL, plan_text TEXT NOT NULL,
  explanation TEXT NOT NULL, trace_json TEXT NOT NULL, programs TEXT NOT NULL);
CREATE TABLE events (sequence INTEGER PRIMARY KEY AUTOINCREMENT, unix_ms INTEGER NOT NULL, job TEXT NOT NULL, kind TEXT NOT
  NULL, node TEXT NOT NULL, device TEXT NOT NULL, epoch INTEGER NOT NULL, message TEXT NOT NULL);
CREATE INDEX events_by_job ON events (job, sequence);
CREATE TABLE drained (node TEXT PRIMARY KEY);
CREATE TABLE profiles (kind TEXT NOT NULL, digest TEXT NOT NULL, device TEXT NOT NULL, body TEXT NOT NULL, tokens_per_second
  TEXT NOT NULL, flops_per_second TEXT NOT NULL, sequence INTEGER PRIMARY KEY AUTOINCREMENT, UNIQUE (kind, digest));
)sql";

std::string Number(double value) { return absl::StrCat(value); }
double Real(const std::string& text) {
  double value = 0;
  return absl::SimpleAtod(text, &value) ? value : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::PermissionDeniedError(absl::StrCat("state folder '", folder, "' cannot be made: ", error.message()));
  const std::string path = (std::filesystem::path(folder) / "coordinator.db").string();
  MOTLEY_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::Open(path));
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(database)));
  MOTLEY_RETURN_IF_ERROR(store->Migrate(path));
  return store;
}

absl::Status SqliteStore::Migrate(const std::string& path) {
  Statement version = database_->Prepare("PRAGMA user_version");
  MOTLEY_RETURN_IF_ERROR(version.Step().status());
  const int64_t found = version.Integer(0);
  version = database_->Prepare("SELECT 1");  // ends the read, so that the schema may change
  if (found == 0) return database_->Execute(absl::StrCat("BEGIN;", kSchema, "PRAGMA user_version=", kSchemaVersion, ";COMMIT;"));
  if (found != kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat(path, " has schema version ", found, ", this coordinator reads version ",
                                                      kSchemaVersion,
                                                      "; use the coordinator that wrote it, or another state folder"));
  }
  return database_->Execute(
      absl::StrCat("DELETE FROM events WHERE sequence <= (SELECT COALESCE(MAX(sequence), 0) FROM events) - ", kEventsKept));
}

absl::Status SqliteStore::Commit(Batch& batch) {
  MOTLEY_RETURN_IF_ERROR(database_->Execute("BEGIN IMMEDIATE"));
  absl::Status status = Write(batch);
  if (status.ok()) status = database_->Execute("COMMIT");
  // After a failed COMMIT (full disk) the transaction may still be open.
  if (!status.ok()) database_->Execute("ROLLBACK").IgnoreError();
  return status;
}

absl::Status SqliteStore::Write(Batch& batch) {
  for (const JobRecord& job : batch.jobs) MOTLEY_RETURN_IF_ERROR(WriteJob(job));
  for (const EpochRow& row : batch.epochs) MOTLEY_RETURN_IF_ERROR(WriteEpoch(row));
  for (const PlanRow& plan : batch.plans) {
    MOTLEY_RETURN_IF_ERROR(database_->Prepare("INSERT OR REPLACE INTO plans VALUES (?,?,?,?,?,?,?)")
                               .Bind(plan.job.value())
                               .Bind(plan.epoch.value())
                               .Bind(plan.plan_json)
                               .Bind(plan.plan_text)
                               .Bind(plan.explanation)
                               .Bind(plan.trace_json)
                               .Bind(ProgramsToJson(plan.programs))
                               .Run());
  }
  for (EventRecord& event : batch.events) MOTLEY_RETURN_IF_ERROR(WriteEvent(event));
  for (const DrainRow& drain : batch.drains) {
    MOTLEY_RETURN_IF_ERROR(
        database_->Prepare(drain.drained ? "INSERT OR REPLACE INTO drained VALUES (?)" : "DELETE FROM drained WHERE node = ?")
            .Bind(drain.node.value())
            .Run());
  }
  constexpr char kProfile[] =
      "INSERT OR REPLACE INTO profiles (kind, digest, device, body, tokens_per_second, flops_per_second) VALUES (?,?,?,?,?,?)";
  for (const auto& [profile, speed] : batch.compute_profiles) {
    MOTLEY_RETURN_IF_ERROR(database_->Prepare(kProfile)
                               .Bind("compute")
                               .Bind(profile.digest)
                               .Bind(profile.device.value())
                               .Bind(ToJson(profile))
                               .Bind(Number(speed.tokens_per_second))
                               .Bind(Number(speed.flops_per_second))
                               .Run());
  }
  for (const CollectiveProfile& profile : batch.collective_profiles) {
    MOTLEY_RETURN_IF_ERROR(database_->Prepare(kProfile)
                               .Bind("collective")
                               .Bind(profile.digest)
                               .Bind("")
                               .Bind(ToJson(profile))
                               .Bind("0")
                               .Bind("0")
                               .Run());
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::WriteJob(const JobRecord& job) {
  return database_->Prepare("INSERT OR REPLACE INTO jobs VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
      .Bind(job.id.value())
      .Bind(ConfigToJson(job.config))
      .Bind(JobPhaseName(job.phase))
      .Bind(job.reason)
      .Bind(job.epoch.value())
      .Bind(job.step)
      .Bind(job.submitted_unix_ms)
      .Bind(job.started_unix_ms)
      .Bind(job.finished_unix_ms)
      .Bind(StepToJson(job.last_step))
      .Bind(job.newest_checkpoint)
      .Bind(Number(job.predicted_step_seconds))
      .Bind(int64_t{job.stop_requested})
      .Bind(job.data_digest)
      .Run();
}

absl::Status SqliteStore::WriteEpoch(const EpochRow& row) {
  Statement newest = database_->Prepare("SELECT COALESCE(MAX(epoch), 0) FROM epochs WHERE job = ?");
  MOTLEY_RETURN_IF_ERROR(newest.Bind(row.job.value()).Step().status());
  if (row.epoch.value() <= newest.Integer(0)) {
    return absl::AlreadyExistsError(
        absl::StrCat("epoch ", row.epoch.value(), " of job ", row.job.value(), " is not above ", newest.Integer(0)));
  }
  return database_->Prepare("INSERT INTO epochs VALUES (?,?,?,?)")
      .Bind(row.job.value())
      .Bind(row.epoch.value())
      .Bind(row.unix_ms)
      .Bind(RanksToJson(row.ranks))
      .Run();
}

absl::Status SqliteStore::WriteEvent(EventRecord& event) {
  Statement insert = database_->Prepare(
      "INSERT INTO events (unix_ms, job, kind, node, device, epoch, message) VALUES (?,?,?,?,?,?,?) RETURNING sequence");
  MOTLEY_RETURN_IF_ERROR(insert.Bind(event.unix_ms)
                             .Bind(event.job.value())
                             .Bind(event.kind)
                             .Bind(event.node.value())
                             .Bind(event.device.value())
                             .Bind(event.epoch.value())
                             .Bind(event.message)
                             .Step()
                             .status());
  event.sequence = insert.Integer(0);
  return insert.Run();
}

absl::StatusOr<std::vector<JobRecord>> SqliteStore::LoadJobs() {
  std::vector<JobRecord> jobs;
  Statement rows = database_->Prepare(
      "SELECT id, config, phase, reason, epoch, step, submitted_unix_ms, started_unix_ms, finished_unix_ms, last_step, "
      "newest_checkpoint, "
      "predicted_step_seconds, stop_requested, data_digest FROM jobs ORDER BY submitted_unix_ms, id");
  while (true) {
    MOTLEY_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return jobs;
    JobRecord job;
    job.id = JobId(rows.Text(0));
    MOTLEY_ASSIGN_OR_RETURN(job.config, ConfigFromJson(rows.Text(1)));
    MOTLEY_ASSIGN_OR_RETURN(job.phase, ParseJobPhase(rows.Text(2)));
    job.reason = rows.Text(3);
    job.epoch = Epoch(rows.Integer(4));
    job.step = rows.Integer(5);
    job.submitted_unix_ms = rows.Integer(6), job.started_unix_ms = rows.Integer(7), job.finished_unix_ms = rows.Integer(8);
    MOTLEY_ASSIGN_OR_RETURN(job.last_step, StepFromJson(rows.Text(9)));
    job.newest_checkpoint = rows.Text(10);
    job.predicted_step_seconds = Real(rows.Text(11));
    job.stop_requested = rows.Integer(12) != 0;
    job.data_digest = rows.Text(13);
    jobs.push_back(std::move(job));
  }
}

absl::StatusOr<EpochRow> SqliteStore::NewestEpoch(const JobId& job) {
  Statement row =
      database_->Prepare("SELECT epoch, unix_ms, ranks FROM epochs WHERE job = ? AND ranks != '[]' ORDER BY epoch DESC LIMIT 1");
  MOTLEY_ASSIGN_OR_RETURN(const bool found, row.Bind(job.value()).Step());
  if (!found) return absl::NotFoundError(absl::StrCat("job ", job.value(), " has begun no epoch"));
  EpochRow epoch{job, Epoch(row.Integer(0)), row.Integer(1), {}};
  MOTLEY_ASSIGN_OR_RETURN(epoch.ranks, RanksFromJson(row.Text(2)));
  return epoch;
}

absl::StatusOr<PlanRow> SqliteStore::FindPlan(const JobId& job) {
  Statement row =
      database_->Prepare("SELECT epoch, plan_json, plan_text, explanation, trace_json, programs FROM plans WHERE job = ?");
  MOTLEY_ASSIGN_OR_RETURN(const bool found, row.Bind(job.value()).Step());
  if (!found) return absl::NotFoundError(absl::StrCat("job '", job.value(), "' has no plan yet"));
  PlanRow plan{job, Epoch(row.Integer(0)), row.Text(1), row.Text(2), row.Text(3), row.Text(4), {}};
  MOTLEY_ASSIGN_OR_RETURN(plan.programs, ProgramsFromJson(row.Text(5)));
  return plan;
}

absl::StatusOr<std::vector<EventRecord>> SqliteStore::EventsAfter(const JobId& job, int64_t sequence, int limit) {
  Statement rows = database_->Prepare(
      absl::StrCat("SELECT sequence, unix_ms, job, kind, node, device, epoch, message FROM events WHERE sequence > ?",
                   job.empty() ? "" : " AND job = ?", " ORDER BY sequence LIMIT ?"));
  rows.Bind(sequence);
  if (!job.empty()) rows.Bind(job.value());
  rows.Bind(int64_t{limit});
  std::vector<EventRecord> events;
  while (true) {
    MOTLEY_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return events;
    events.push_back({rows.Integer(0), rows.Integer(1), JobId(rows.Text(2)), rows.Text(3), NodeName(rows.Text(4)),
                      DeviceId(rows.Text(5)), Epoch(rows.Integer(6)), rows.Text(7)});
  }
}

absl::StatusOr<std::vector<NodeName>> SqliteStore::LoadDrained() {
  Statement rows = database_->Prepare("SELECT node FROM drained");
  std::vector<NodeName> nodes;
  while (true) {
    MOTLEY_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return nodes;
    nodes.push_back(NodeName(rows.Text(0)));
  }
}

absl::StatusOr<std::string> SqliteStore::FindProfile(const char* kind, const std::string& digest) {
  Statement row = database_->Prepare("SELECT body FROM profiles WHERE kind = ? AND digest = ?");
  MOTLEY_ASSIGN_OR_RETURN(const bool found, row.Bind(kind).Bind(digest).Step());
  if (!found) return absl::NotFoundError(absl::StrCat("no ", kind, " profile is stored under ", digest));
  return row.Text(0);
}

absl::StatusOr<ComputeProfile> SqliteStore::FindComputeProfile(const std::string& digest) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, FindProfile("compute", digest));
  return ComputeProfileFromJson(text);
}

absl::StatusOr<CollectiveProfile> SqliteStore::FindCollectiveProfile(const std::string& digest) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, FindProfile("collective", digest));
  return CollectiveProfileFromJson(text);
}

absl::StatusOr<std::map<DeviceId, MeasuredSpeed>> SqliteStore::LoadSpeeds() {
  Statement rows = database_->Prepare(
      "SELECT device, tokens_per_second, flops_per_second FROM profiles WHERE kind = 'compute' ORDER BY sequence");
  std::map<DeviceId, MeasuredSpeed> speeds;
  while (true) {
    MOTLEY_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return speeds;
    speeds[DeviceId(rows.Text(0))] = {Real(rows.Text(1)), Real(rows.Text(2))};
  }
}

}  // namespace motley::coordinator
