#include "coordinator/store/rebuild.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/count.h"
#include "common/base/job_id.h"
#include "common/base/job_uid.h"
#include "common/base/status_macros.h"
#include "coordinator/state/event.h"
#include "coordinator/store/records.h"

namespace motley::coordinator {
namespace {

// What the other tables say of jobs.
struct Mentions {
  std::set<std::string> whole;            // jobs whose record is sound
  std::vector<std::string> damaged;       // ids as they read in records that are not
  std::map<std::string, int64_t> others;  // mentioned elsewhere, with the newest time
  std::map<std::string, int64_t> newest_epoch;

  void See(TableId table, const Row& row) {
    switch (table) {
      case TableId::kJobs:
        whole.insert(TextAt(row, 0));
        return;
      case TableId::kEpochs:
        Mention(TextAt(row, 0), IntegerAt(row, 2));
        newest_epoch[TextAt(row, 0)] = std::max(newest_epoch[TextAt(row, 0)], IntegerAt(row, 1));
        return;
      case TableId::kPlans:
        return Mention(TextAt(row, 0), 0);
      case TableId::kEvents:
        return Mention(TextAt(row, 2), IntegerAt(row, 1));
      case TableId::kDrained:
      case TableId::kProfiles:
      case TableId::kAuthorities:
      case TableId::kTokens:
      case TableId::kMembers:
      case TableId::kTerms:
      case TableId::kUnwanted:  // of jobs that were deleted
      case TableId::kHistories:
        return;
    }
  }
  void Mention(const std::string& job, int64_t unix_ms) {
    if (!job.empty()) others[job] = std::max(others[job], unix_ms);
  }
};

// Jobs that lost their record, with their new one; and how many of whom nothing else speaks.
struct LostJobs {
  std::vector<JobRecord> failed;
  int64_t nameless = 0;
};

// Rows of versions without uids get one. What was written for such a job has none, and is its own.
absl::Status GiveUid(Row& row) {
  MOTLEY_ASSIGN_OR_RETURN(JobRecord job, JobOf(row));
  MOTLEY_ASSIGN_OR_RETURN(job.uid, NewJobUid());
  job.has_unnamed_checkpoints = true;
  row = ToRow(job);
  return absl::OkStatus();
}

JobRecord Failed(const std::string& id, const Mentions& mentions) {
  JobRecord job;
  job.id = JobId(id);
  job.uid = NewJobUid().value_or(JobUid());
  job.phase = JobPhase::kFailed;
  job.reason =
      "its record in the coordinator's database was damaged and is lost; its checkpoints are not: submit it again under another "
      "id";
  if (auto epoch = mentions.newest_epoch.find(id); epoch != mentions.newest_epoch.end()) job.epoch = Epoch(epoch->second);
  job.submitted_unix_ms = job.finished_unix_ms = absl::ToUnixMillis(absl::Now());
  return job;
}

// An altered record may read with another id than its own: one that something else speaks of is believed first.
LostJobs FindLost(const Mentions& mentions, int64_t missing) {
  LostJobs lost;
  std::set<std::string> named;
  std::vector<std::string> doubtful;
  for (const std::string& id : mentions.damaged) {
    if (!mentions.whole.contains(id) && mentions.others.contains(id)) {
      named.insert(id);
    } else {
      doubtful.push_back(id);
    }
  }
  missing += static_cast<int64_t>(doubtful.size());
  std::vector<std::pair<int64_t, std::string>> orphans;
  for (const auto& [id, unix_ms] : mentions.others) {
    if (!mentions.whole.contains(id) && !named.contains(id)) orphans.emplace_back(-unix_ms, id);
  }
  std::sort(orphans.begin(), orphans.end());
  for (size_t i = 0; i < orphans.size() && missing > 0; ++i, --missing) named.insert(orphans[i].second);
  for (size_t i = 0; i < doubtful.size() && missing > 0; ++i) {
    if (!mentions.whole.contains(doubtful[i]) && IsJobId(doubtful[i]) && named.insert(doubtful[i]).second) --missing;
  }
  for (const std::string& id : named) lost.failed.push_back(Failed(id, mentions));
  lost.nameless = missing;
  return lost;
}

std::vector<StoreFinding> Describe(const Inspection& inspection, const LostJobs& lost) {
  std::vector<StoreFinding> findings = inspection.findings;
  for (const JobRecord& job : lost.failed) {
    findings.push_back({kind::kStoreDamaged, absl::StrCat("job ", job.id.value(), " is FAILED: ", job.reason), job.id});
  }
  if (lost.nameless > 0) {
    findings.push_back({kind::kStoreDamaged, absl::StrCat(Count(lost.nameless, "record of a job is", "records of jobs are"),
                                                          " lost whose ids nothing else names")});
  }
  if (findings.empty()) return findings;
  findings.push_back(
      {kind::kStoreDamaged,
       "the database was made anew from what is sound; the damaged one is kept beside it (coordinator.db.damaged-...)"});
  return findings;
}

}  // namespace

EventRecord EventFor(const StoreFinding& finding, int64_t sequence) {
  EventRecord event;
  event.sequence = sequence;
  event.unix_ms = absl::ToUnixMillis(absl::Now());
  event.kind = finding.kind;
  event.job = finding.job;
  event.message = finding.text;
  return event;
}

absl::StatusOr<std::vector<StoreFinding>> Rebuild(const Database& from, int64_t version, const Inspection& inspection,
                                                  const LedgerState& start, const std::string& path) {
  MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<Database> to, Database::Open(path));
  MOTLEY_RETURN_IF_ERROR(to->Execute(absl::StrCat("BEGIN IMMEDIATE;", CreateSql())));
  Ledger ledger(*to);
  ledger.Reset({start.mark, {}, start.secret});
  Mentions mentions;
  Inspection seen = inspection;
  int64_t sequence = 0;
  absl::Status written;
  for (size_t t = 0; t < TablesOf(version); ++t) {
    const auto table = static_cast<TableId>(t);
    const absl::Status scan = Scan(from, table, version, [&](const Row& row, const std::string& hash) {
      if (hash.empty()) {
        if (table == TableId::kJobs) mentions.damaged.push_back(TextAt(row, 0));
        return;
      }
      mentions.See(table, row);
      if (table == TableId::kEvents) sequence = std::max(sequence, IntegerAt(row, 0));
      // Of a job that is lost, whose id another may take.
      const bool stray = table == TableId::kHistories && !mentions.whole.contains(TextAt(row, 0));
      if (!written.ok() || stray) return;
      Row whole = row;
      if (table == TableId::kJobs && version < kJobUidVersion) written = GiveUid(whole);
      if (written.ok()) written = ledger.Put(table, whole);
    });
    // Of a version with hashes it is among the findings already.
    if (!scan.ok() && version < kHashedVersion) seen.findings.push_back({kind::kStoreDamaged, std::string(scan.message())});
  }
  MOTLEY_RETURN_IF_ERROR(written);
  const LostJobs lost = FindLost(mentions, inspection.missing[static_cast<size_t>(TableId::kJobs)]);
  for (const JobRecord& job : lost.failed) MOTLEY_RETURN_IF_ERROR(ledger.Put(TableId::kJobs, ToRow(job)));
  std::vector<StoreFinding> findings = Describe(seen, lost);
  for (const StoreFinding& finding : findings)
    MOTLEY_RETURN_IF_ERROR(ledger.Put(TableId::kEvents, ToRow(EventFor(finding, ++sequence))));
  MOTLEY_RETURN_IF_ERROR(ledger.Seal());
  MOTLEY_RETURN_IF_ERROR(to->Execute("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)"));
  return findings;
}

}  // namespace motley::coordinator
