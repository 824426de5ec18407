#include "coordinator/store/maintenance.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/count.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "coordinator/state/event.h"
#include "coordinator/store/open.h"
#include "coordinator/store/rebuild.h"
#include "coordinator/store/records.h"
#include "coordinator/store/store.h"

namespace motley::coordinator {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0600;
constexpr int kCopies = 10;
constexpr absl::Duration kBetweenCopies = absl::Milliseconds(200);
// Where nothing says how much is lost. Workers know what they have seen; this is for those that are away.
constexpr int64_t kUnknownRaise = 1000;
constexpr int64_t kHighestTerm = 1'000'000'000;

absl::Status Copy(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return FileError(error.value(), "copy", absl::StrCat(from, "' to '", to));
  // A copy has its source's mode, and a backup that was carried elsewhere any: the cluster's keys are in it.
  return chmod(to.c_str(), kMode) == 0 ? absl::OkStatus() : FileError(errno, "close to others", to);
}

absl::Status Remove(const std::string& database) {
  MOTLEY_RETURN_IF_ERROR(RemoveTree(database + "-wal"));
  return RemoveTree(database);
}

absl::Status CheckVersion(const Database& database, StoreSummary* summary) {
  MOTLEY_ASSIGN_OR_RETURN(summary->version, ReadVersion(database));
  if (summary->version == kSchemaVersion) return absl::OkStatus();
  if (summary->version == 0) {
    return absl::DataLossError(absl::StrCat(database.path(), " holds nothing: its log may have been removed"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(database.path(), " has schema version ", summary->version, ", this program reads ", kSchemaVersion,
                   summary->version < kSchemaVersion ? "; a coordinator that is started on it brings it to that version"
                                                     : "; use the version that wrote it"));
}

absl::StatusOr<StoreSummary> Summarize(const Database& database) {
  StoreSummary summary;
  MOTLEY_RETURN_IF_ERROR(CheckVersion(database, &summary));
  MOTLEY_ASSIGN_OR_RETURN(Inspection inspection, Inspect(database));
  summary.mark = inspection.state.mark;
  for (size_t t = 0; t < kNumTables; ++t) summary.rows[t] = inspection.state.sums[t].rows;
  summary.findings = std::move(inspection.findings);
  return summary;
}

// Of a copy with the log beside it; the log is taken in.
absl::StatusOr<StoreSummary> TakeIn(const std::string& database_path) {
  MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, Database::Open(database_path));
  return Summarize(*database);
}

absl::Status NoStore(const std::string& folder) {
  return absl::NotFoundError(absl::StrCat("there is no store in '", folder, "': coordinator.db is missing"));
}

// The highest number of a term that the database knows of.
absl::StatusOr<int64_t> HighestTerm(const Database& database) {
  int64_t highest = 0;
  MOTLEY_RETURN_IF_ERROR(Scan(database, TableId::kTerms, kSchemaVersion, [&](const Row& row, const std::string& hash) {
    const int64_t number = hash.empty() ? 0 : TermRecordOf(row).term.number;  // a row that is not what was written says nothing
    highest = std::max(highest, std::min(number, kHighestTerm));
  }));
  return highest;
}

// Of the database that is to be replaced; what cannot be read says nothing.
int64_t HighestTermIn(const std::string& path) {
  if (!FileExists(path)) return 0;
  const auto database = Database::Open(path, Database::Mode::kInspect);
  if (!database.ok()) return 0;
  const auto version = ReadVersion(**database);
  if (!version.ok() || *version != kSchemaVersion) return 0;
  return HighestTerm(**database).value_or(0);
}

// In one transaction: epochs of unfinished jobs, the term, the event, the count.
absl::Status Raise(Database& database, const LedgerState& state, const MarkFile::Content& file, const std::string& from,
                   RestoredStore* restored) {
  std::vector<Row> jobs;
  MOTLEY_RETURN_IF_ERROR(
      Scan(database, TableId::kJobs, kSchemaVersion, [&](const Row& row, const std::string&) { jobs.push_back(row); }));
  Statement newest = database.Prepare("SELECT COALESCE(MAX(sequence), 0) FROM events");
  MOTLEY_RETURN_IF_ERROR(newest.Step().status());
  const int64_t sequence = newest.Integer(0) + 1;
  newest = database.Prepare("SELECT 1");  // ends the read

  MOTLEY_RETURN_IF_ERROR(database.Execute("BEGIN IMMEDIATE"));
  Ledger ledger(database);
  ledger.Reset(state);
  for (const Row& row : jobs) {
    MOTLEY_ASSIGN_OR_RETURN(JobRecord job, JobOf(row));
    if (IsFinal(job.phase)) continue;
    job.epoch = Epoch(job.epoch.value() + restored->raised_by);
    MOTLEY_RETURN_IF_ERROR(ledger.Put(TableId::kJobs, ToRow(job)));
    ++restored->raised_jobs;
  }
  if (restored->term.number > 0) MOTLEY_RETURN_IF_ERROR(ledger.Put(TableId::kTerms, ToRow(TermRecord{restored->term, true})));
  StoreFinding finding;
  finding.kind = kind::kStoreRestored;
  finding.text = absl::StrCat(
      "the database was restored from ", from, " (", Count(state.mark.commits, "commit"), ", ", Count(jobs.size(), "job"), ")",
      restored->lost_commits > 0 ? absl::StrCat("; ", restored->lost_commits, " later commits are lost") : "",
      "; the generations of ", Count(restored->raised_jobs, "unfinished job"), " went up by ", restored->raised_by,
      restored->term.number > 0 ? absl::StrCat("; it takes the cluster over with ", ToText(restored->term)) : "");
  MOTLEY_RETURN_IF_ERROR(ledger.Put(TableId::kEvents, ToRow(EventFor(finding, sequence))));
  if (file.mark && file.mark->store_id == state.mark.store_id) ledger.SkipTo(file.mark->commits);
  MOTLEY_RETURN_IF_ERROR(ledger.Seal());
  restored->summary.mark = ledger.state().mark;
  return database.Execute("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
}

// What is wrong with a backup, by the name that its user knows.
absl::Status CheckSound(const absl::StatusOr<StoreSummary>& summary, const std::string& from) {
  if (summary.ok() && summary->findings.empty()) return absl::OkStatus();
  if (!summary.ok() && !absl::IsDataLoss(summary.status())) return summary.status();
  const std::string why = summary.ok() ? summary->findings[0].text : "it is no whole database";
  return absl::DataLossError(absl::StrCat("'", from, "' is damaged and was not put in place: ", why, "; take an older one"));
}

}  // namespace

absl::StatusOr<StoreSummary> CheckStore(const std::string& folder) {
  if (!FileExists(folder + "/coordinator.db")) return NoStore(folder);
  MOTLEY_ASSIGN_OR_RETURN(const StateFolder lock, StateFolder::Lock(folder));
  MOTLEY_ASSIGN_OR_RETURN(const MarkFile::Content file, MarkFile::Read(lock.Mark()));
  MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, Database::Open(lock.Database(), Database::Mode::kInspect));
  MOTLEY_ASSIGN_OR_RETURN(StoreSummary summary, Summarize(*database));
  for (StoreFinding& finding : CompareWithMark(summary.mark, file).findings) summary.findings.push_back(std::move(finding));
  return summary;
}

absl::StatusOr<StoreSummary> BackUpStore(const std::string& folder, const std::string& to) {
  const std::string database = folder + "/coordinator.db", partial = to + ".partial";
  if (!FileExists(database)) return NoStore(folder);
  if (FileExists(to)) return absl::AlreadyExistsError(absl::StrCat("'", to, "' is there already; give the backup another name"));
  MOTLEY_ASSIGN_OR_RETURN(const MarkFile::Content before, MarkFile::Read(folder + "/coordinator.mark"));
  absl::StatusOr<StoreSummary> summary = absl::DataLossError("no copy was taken");
  for (int copy = 0; copy < kCopies; ++copy) {
    if (copy > 0) absl::SleepFor(kBetweenCopies);
    MOTLEY_RETURN_IF_ERROR(Remove(partial));
    MOTLEY_RETURN_IF_ERROR(Copy(database, partial));
    if (FileExists(database + "-wal")) MOTLEY_RETURN_IF_ERROR(Copy(database + "-wal", partial + "-wal"));
    summary = TakeIn(partial);
    if (!summary.ok() || !summary->findings.empty()) continue;
    const bool older =
        before.mark && before.mark->store_id == summary->mark.store_id && summary->mark.commits < before.mark->commits;
    if (older) {
      summary->findings.push_back({kind::kStoreOlder, "the copy is older than the store"});
      continue;
    }
    if (rename(partial.c_str(), to.c_str()) != 0) return FileError(errno, "rename", partial);
    MOTLEY_RETURN_IF_ERROR(SyncFolder(fs::absolute(to).parent_path().string()));
    return summary;
  }
  Remove(partial).IgnoreError();
  MOTLEY_RETURN_IF_ERROR(summary.status());
  return absl::DataLossError(absl::StrCat("no sound copy of ", database, " could be taken: ", summary->findings[0].text,
                                          "; see motley-coordinator check"));
}

absl::StatusOr<RestoredStore> RestoreStore(const std::string& folder, const RestoreOptions& options) {
  const std::string& from = options.from;
  if (!FileExists(from)) return absl::NotFoundError(absl::StrCat("'", from, "' does not exist"));
  MOTLEY_ASSIGN_OR_RETURN(StateFolder lock, StateFolder::Lock(folder));
  MOTLEY_RETURN_IF_ERROR(Remove(lock.Draft()));
  MOTLEY_RETURN_IF_ERROR(Copy(from, lock.Draft()));
  const absl::Cleanup no_draft = [&lock] { Remove(lock.Draft()).IgnoreError(); };  // of one that was put in place there is none
  RestoredStore restored;
  {
    absl::StatusOr<std::unique_ptr<Database>> opened = Database::Open(lock.Draft());
    const absl::StatusOr<StoreSummary> summary = opened.ok() ? Summarize(**opened) : opened.status();
    MOTLEY_RETURN_IF_ERROR(CheckSound(summary, from));
    const std::unique_ptr<Database> database = *std::move(opened);
    restored.summary = *summary;
    MOTLEY_ASSIGN_OR_RETURN(const LedgerState state, ReadMark(*database));
    MOTLEY_ASSIGN_OR_RETURN(const MarkFile::Content file, MarkFile::Read(lock.Mark()));
    // A folder that is behind the backup knows nothing of what came after it.
    if (file.mark && file.mark->store_id == state.mark.store_id && file.mark->commits >= state.mark.commits) {
      restored.lost_commits = file.mark->commits - state.mark.commits;
    }
    if (options.take_over) {
      MOTLEY_ASSIGN_OR_RETURN(const int64_t highest, HighestTerm(*database));
      MOTLEY_ASSIGN_OR_RETURN(restored.term, NewTerm(std::max(highest, HighestTermIn(lock.Database())) + 1));
    }
    restored.raised_by = restored.lost_commits < 0 ? kUnknownRaise : EpochRaise(restored.lost_commits);
    if (options.take_over) restored.raised_by = std::max(restored.raised_by, kUnknownRaise);  // what the other one began
    MOTLEY_RETURN_IF_ERROR(Raise(*database, state, file, from, &restored));
  }
  MOTLEY_ASSIGN_OR_RETURN(restored.aside, lock.Replace("replaced"));
  MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<MarkFile> mark, MarkFile::Open(lock.Mark()));
  MOTLEY_RETURN_IF_ERROR(mark->Write(restored.summary.mark));
  return restored;
}

}  // namespace motley::coordinator
