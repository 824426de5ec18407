#include "coordinator/store/open.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "coordinator/state/event.h"
#include "coordinator/store/number_key.h"
#include "coordinator/store/rebuild.h"

namespace motley::coordinator {
namespace {

// The new database in the place of the one that `opened` holds. A secret that is not known, because the version had none or the
// mark was damaged, is made anew: what workers bring back of before counts no more then, and fences nothing (NumberKey's id).
absl::Status Remake(StateFolder& folder, int64_t version, const Inspection& inspection, LedgerState start, const char* because,
                    OpenedDatabase* opened) {
  if (start.secret.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(start.secret, NumberKey::NewSecret());
  }
  for (const char* tail : {"", "-wal"}) MOTLEY_RETURN_IF_ERROR(RemoveTree(folder.Draft() + tail));
  MOTLEY_ASSIGN_OR_RETURN(opened->said, Rebuild(*opened->database, version, inspection, start, folder.Draft()));
  opened->database->LeaveLog();
  opened->database.reset();
  MOTLEY_ASSIGN_OR_RETURN(const std::string aside, folder.Replace(because));
  LogWarning(absl::StrCat("the database was made anew; the one from before is kept as ", aside));
  MOTLEY_ASSIGN_OR_RETURN(opened->database, Database::Open(folder.Database()));
  MOTLEY_ASSIGN_OR_RETURN(const Inspection again, Inspect(*opened->database));
  if (!again.sound()) return absl::DataLossError(absl::StrCat(folder.Database(), ": ", again.findings[0].text));
  opened->state = again.state;
  return absl::OkStatus();
}

absl::Status Create(StateFolder& folder, const MarkFile::Content& file, OpenedDatabase* opened) {
  Ledger ledger(*opened->database);
  LedgerState empty;
  // Workers that know the old one are not told of another store.
  empty.mark.store_id = file.mark ? file.mark->store_id : NewStoreId();
  MOTLEY_ASSIGN_OR_RETURN(empty.secret, NumberKey::NewSecret());
  ledger.Reset(empty);
  MOTLEY_RETURN_IF_ERROR(opened->database->Execute(absl::StrCat("BEGIN IMMEDIATE;", CreateSql())));
  MOTLEY_RETURN_IF_ERROR(ledger.Seal());
  MOTLEY_RETURN_IF_ERROR(opened->database->Execute("COMMIT"));
  opened->state = ledger.state();
  if (!file.exists) return absl::OkStatus();
  opened->unsaid.push_back(
      {kind::kStoreOlder,
       absl::StrCat("the database ", folder.Database(), " is missing or empty",
                    file.mark ? absl::StrCat(", but ", file.mark->commits, " commits were made to it") : "",
                    ": its jobs are not known any more; restore it (motley-coordinator restore) or submit them again")});
  if (file.mark) opened->count_from = file.mark->commits;
  return absl::OkStatus();
}

}  // namespace

std::string NewStoreId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

Comparison CompareWithMark(const StoreMark& database, const MarkFile::Content& file) {
  Comparison comparison;
  auto say = [&](const char* kind, std::string text) { comparison.findings.push_back({kind, std::move(text)}); };
  if (!file.exists) {
    say(kind::kStoreOlder, "coordinator.mark is missing: whether this is the newest state of the database cannot be known");
    return comparison;
  }
  if (file.damaged) say(kind::kStoreDamaged, "coordinator.mark is not what was written");
  if (!file.mark || database.store_id.empty()) return comparison;
  if (file.mark->store_id != database.store_id) {
    say(kind::kStoreOlder, absl::StrCat("the database is another one (", database.store_id, ", ", database.commits,
                                        " commits) than the folder had (", file.mark->store_id, ", ", file.mark->commits,
                                        " commits): somebody put it there"));
  } else if (file.mark->commits > database.commits) {
    comparison.lost_commits = file.mark->commits - database.commits;
    say(kind::kStoreOlder, absl::StrCat("the database is older than it was: ", database.commits, " of ", file.mark->commits,
                                        " commits are there; what the last ", comparison.lost_commits,
                                        " changed is lost (its log was removed or cut, or an older copy was put in its place)"));
  }
  return comparison;
}

absl::StatusOr<OpenedDatabase> OpenDatabase(StateFolder& folder) {
  OpenedDatabase opened;
  MOTLEY_ASSIGN_OR_RETURN(const MarkFile::Content file, MarkFile::Read(folder.Mark()));
  MOTLEY_ASSIGN_OR_RETURN(opened.database, Database::Open(folder.Database()));
  MOTLEY_ASSIGN_OR_RETURN(const int64_t version, ReadVersion(*opened.database));
  if (version < 0 || version > kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat(folder.Database(), " has schema version ", version,
                                                      ", this coordinator reads versions 1 to ", kSchemaVersion,
                                                      "; use the coordinator that wrote it, or another state folder"));
  }
  if (version == 0) {
    MOTLEY_RETURN_IF_ERROR(Create(folder, file, &opened));
    return opened;
  }
  if (version < kHashedVersion) {
    const StoreMark fresh{file.mark ? file.mark->store_id : NewStoreId(), file.mark ? file.mark->commits : 0};
    MOTLEY_RETURN_IF_ERROR(
        Remake(folder, version, Inspection(), {fresh, {}, ""}, absl::StrCat("version-", version).c_str(), &opened));
    return opened;
  }
  MOTLEY_ASSIGN_OR_RETURN(const Inspection inspection, Inspect(*opened.database, version));
  opened.state = inspection.state;
  const Comparison comparison = CompareWithMark(inspection.state.mark, file);
  opened.unsaid = comparison.findings;
  opened.lost_commits = comparison.lost_commits;
  opened.count_from = inspection.state.mark.commits + comparison.lost_commits;
  if (inspection.sound() && version == kSchemaVersion) return opened;
  StoreMark mark = inspection.state.mark;
  if (mark.store_id.empty()) mark = file.mark.value_or(StoreMark{NewStoreId(), 0});
  opened.count_from = std::max(opened.count_from, mark.commits);
  const std::string because = inspection.sound() ? absl::StrCat("version-", version) : "damaged";
  MOTLEY_RETURN_IF_ERROR(Remake(folder, version, inspection, {mark, {}, inspection.state.secret}, because.c_str(), &opened));
  return opened;
}

}  // namespace motley::coordinator
