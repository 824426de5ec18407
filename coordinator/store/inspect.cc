#include "coordinator/store/inspect.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "coordinator/state/event.h"
#include "coordinator/store/records.h"

namespace motley::coordinator {
namespace {

constexpr size_t kNamed = 5;  // keys in a sentence

// Whether the text in the row can be understood: a hash says only that it is what was written.
bool IsReadable(TableId table, const Row& row) { return table != TableId::kJobs || JobOf(row).ok(); }

struct Tally {
  TableSum sum;
  int64_t damaged = 0;
  std::vector<std::string> keys;
};

void Judge(TableId id, const Tally& tally, const absl::Status& scan, const LedgerState* mark, Inspection* inspection) {
  const std::string& name = Spec(id).name;
  auto find = [&](std::string text) {
    inspection->findings.push_back({kind::kStoreDamaged, absl::StrCat("table ", name, text)});
  };
  if (!scan.ok()) find(absl::StrCat(" cannot be read whole: ", std::string(scan.message())));
  if (tally.damaged > 0) {
    find(absl::StrFormat(": %d %s not what was written (%s%s)", tally.damaged, tally.damaged == 1 ? "row is" : "rows are",
                         absl::StrJoin(tally.keys, "; "), static_cast<size_t>(tally.damaged) > tally.keys.size() ? "; ..." : ""));
  }
  if (mark == nullptr) return;
  const TableSum& written = mark->sums[static_cast<size_t>(id)];
  if (written == tally.sum) return;
  const int64_t missing = written.rows - tally.sum.rows - tally.damaged;
  inspection->missing[static_cast<size_t>(id)] = std::max<int64_t>(0, missing);
  if (missing > 0) return find(absl::StrFormat(": %d of %d rows are missing", missing, written.rows));
  if (missing < 0) return find(absl::StrFormat(" has %d rows more than were written", -missing));
  if (tally.damaged == 0) find(" does not hold the rows that were written last");
}

absl::Status CheckStructure(const Database& database, int64_t version, Inspection* inspection) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string expected, ExpectedDefinitions(version));
  MOTLEY_ASSIGN_OR_RETURN(const std::string found, ReadDefinitions(database));
  if (found != expected) inspection->findings.push_back({kind::kStoreDamaged, "the definitions of the tables were altered"});
  Statement check = database.Prepare("PRAGMA integrity_check(3)");
  std::vector<std::string> complaints;
  while (true) {
    const absl::StatusOr<bool> row = check.Step();
    if (!row.ok()) complaints.push_back(std::string(row.status().message()));
    if (!row.ok() || !*row) break;
    if (check.Text(0) != "ok") complaints.push_back(check.Text(0));
  }
  if (complaints.empty()) return absl::OkStatus();
  inspection->findings.push_back(
      {kind::kStoreDamaged, absl::StrCat("the structure of the file is damaged: ",
                                         absl::StrReplaceAll(absl::StrJoin(complaints, "; "), {{"\n", "; "}}))});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> ReadVersion(const Database& database) {
  Statement version = database.Prepare("PRAGMA user_version");
  MOTLEY_RETURN_IF_ERROR(version.Step().status());
  const int64_t found = version.Integer(0);
  if (found != 0) return found;
  MOTLEY_ASSIGN_OR_RETURN(const std::string definitions, ReadDefinitions(database));
  if (definitions.empty()) return 0;
  return absl::DataLossError(absl::StrCat(database.path(), " has tables and no version; restore it from a copy"));
}

std::string ReadRow(const Statement& statement, const TableSpec& spec, int begin, int64_t version, Row* row) {
  row->clear();
  Row written;
  bool typed = true;
  int column = begin;
  for (const TableSpec::Column& c : spec.columns) {
    if (c.since > version) {
      row->push_back(c.integer ? Value(int64_t{0}) : Value(std::string()));
      continue;
    }
    typed = typed && (c.integer ? statement.IsInteger(column) : statement.IsText(column));
    row->push_back(c.integer ? Value(statement.Integer(column)) : Value(statement.Text(column)));
    written.push_back(row->back());
    ++column;
  }
  const bool hashed = version >= kHashedVersion;
  if (!typed || statement.columns() != column + (hashed ? 1 : 0)) return "";
  const std::string hash = HashOf(spec.name, written);
  return hashed && hash != statement.Text(column) ? "" : hash;
}

absl::Status Scan(const Database& database, TableId table, int64_t version, const RowSink& sink) {
  const TableSpec& spec = Spec(table);
  Row row;
  int64_t last = std::numeric_limits<int64_t>::min();
  auto pass = [&](const std::string& sql, bool forward) -> absl::Status {
    Statement rows = database.Prepare(sql);
    if (!forward) rows.Bind(last);
    while (true) {
      MOTLEY_ASSIGN_OR_RETURN(const bool found, rows.Step());
      if (!found) return absl::OkStatus();
      if (forward) last = rows.Integer(0);
      const std::string hash = ReadRow(rows, spec, 1, version, &row);
      sink(row, IsReadable(table, row) ? hash : "");
    }
  };
  const absl::Status status = pass(absl::StrCat("SELECT rowid, * FROM ", spec.name, " ORDER BY rowid"), true);
  if (status.ok()) return status;
  pass(absl::StrCat("SELECT rowid, * FROM ", spec.name, " WHERE rowid > ? ORDER BY rowid DESC"), false).IgnoreError();
  return status;
}

absl::StatusOr<Inspection> Inspect(const Database& database, int64_t version) {
  Inspection inspection;
  MOTLEY_RETURN_IF_ERROR(CheckStructure(database, version, &inspection));
  const absl::StatusOr<LedgerState> mark = ReadMark(database, version);
  if (mark.ok()) {
    inspection.state.mark = mark->mark;
    inspection.state.secret = mark->secret;
  } else {
    inspection.findings.push_back(
        {kind::kStoreDamaged, absl::StrCat(std::string(mark.status().message()), "; whether rows are missing cannot be known")});
  }
  for (size_t t = 0; t < TablesOf(version); ++t) {
    const auto id = static_cast<TableId>(t);
    const TableSpec& spec = Spec(id);
    Tally tally;
    const absl::Status scan = Scan(database, id, version, [&](const Row& row, const std::string& hash) {
      if (!hash.empty()) return tally.sum.Add(hash);
      ++tally.damaged;
      if (tally.keys.size() < kNamed) tally.keys.push_back(KeyText(spec, row));
    });
    Judge(id, tally, scan, mark.ok() ? &*mark : nullptr, &inspection);
    inspection.state.sums[t] = tally.sum;
  }
  return inspection;
}

}  // namespace motley::coordinator
