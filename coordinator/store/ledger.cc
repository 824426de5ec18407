#include "coordinator/store/ledger.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace motley::coordinator {
namespace {

std::string KeyCondition(const TableSpec& spec) {
  std::string sql;
  for (size_t k = 0; k < spec.keys; ++k) absl::StrAppend(&sql, k == 0 ? "" : " AND ", spec.columns[k].name, " = ?");
  return sql;
}

void Bind(Statement& statement, const Value& value) {
  std::visit([&](const auto& v) { statement.Bind(v); }, value);
}

Row MarkRow(const LedgerState& state, int64_t version) {
  Row row = {state.mark.store_id, state.mark.commits, SumsText(state.sums, version)};
  if (!state.secret.empty()) row.push_back(state.secret);
  return row;
}

}  // namespace

std::string CreateSql(int64_t version) {
  std::string sql;
  for (const TableSpec& spec : Tables()) {
    if (spec.since > version) continue;
    absl::StrAppend(&sql, "CREATE TABLE ", spec.name, " (");
    for (const TableSpec::Column& column : spec.columns) {
      if (column.since > version) continue;
      absl::StrAppend(&sql, column.name, column.integer ? " INTEGER NOT NULL, " : " TEXT NOT NULL, ");
    }
    absl::StrAppend(&sql, "hash TEXT NOT NULL, PRIMARY KEY (");
    for (size_t k = 0; k < spec.keys; ++k) absl::StrAppend(&sql, k == 0 ? "" : ", ", spec.columns[k].name);
    absl::StrAppend(&sql, "));\n");
  }
  return absl::StrCat(sql,
                      "CREATE INDEX events_by_job ON events (job, sequence);\n"
                      "CREATE TABLE mark (id INTEGER NOT NULL PRIMARY KEY, store_id TEXT NOT NULL, commits INTEGER NOT NULL, "
                      "sums TEXT NOT NULL, ",
                      version < kKeyVersion ? "" : "secret TEXT NOT NULL, ",
                      "hash TEXT NOT NULL);\nPRAGMA user_version=", version, ";\n");
}

absl::StatusOr<std::string> ReadDefinitions(const Database& database) {
  Statement rows = database.Prepare("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name");
  std::string text;
  while (true) {
    MOTLEY_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return text;
    absl::StrAppend(&text, rows.Text(0), " ", rows.Text(1), " ", rows.Text(2), " ", rows.Text(3), "\n");
  }
}

absl::StatusOr<std::string> ExpectedDefinitions(int64_t version) {
  MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<Database> memory, Database::Open(""));
  MOTLEY_RETURN_IF_ERROR(memory->Execute(CreateSql(version)));
  return ReadDefinitions(*memory);
}

absl::StatusOr<LedgerState> ReadMark(const Database& database, int64_t version) {
  const bool keyed = version >= kKeyVersion;
  Statement row =
      database.Prepare(absl::StrCat("SELECT store_id, commits, sums, hash", keyed ? ", secret" : "", " FROM mark WHERE id = 1"));
  MOTLEY_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (!found) return absl::DataLossError("the mark, which counts the commits, is missing");
  LedgerState state;
  state.mark = {row.Text(0), row.Integer(1)};
  if (keyed) state.secret = row.Text(4);
  if (!ParseSums(row.Text(2), version, &state.sums) || HashOf("mark", MarkRow(state, version)) != row.Text(3)) {
    return absl::DataLossError("the mark, which counts the commits, is not what was written");
  }
  return state;
}

absl::StatusOr<std::string> Ledger::StoredHash(const TableSpec& spec, const Row& key) {
  Statement select = database_.Prepare(absl::StrCat("SELECT hash FROM ", spec.name, " WHERE ", KeyCondition(spec)));
  for (size_t k = 0; k < spec.keys; ++k) Bind(select, key[k]);
  MOTLEY_ASSIGN_OR_RETURN(const bool found, select.Step());
  return found ? select.Text(0) : "";
}

absl::Status Ledger::Put(TableId table, const Row& row) {
  const TableSpec& spec = Spec(table);
  TableSum& sum = state_.sums[static_cast<size_t>(table)];
  MOTLEY_ASSIGN_OR_RETURN(const std::string old, StoredHash(spec, row));
  std::string sql = absl::StrCat("INSERT OR REPLACE INTO ", spec.name, " VALUES (");
  for (size_t c = 0; c < row.size(); ++c) absl::StrAppend(&sql, "?,");
  Statement insert = database_.Prepare(absl::StrCat(sql, "?)"));
  for (const Value& value : row) Bind(insert, value);
  const std::string hash = HashOf(spec.name, row);
  MOTLEY_RETURN_IF_ERROR(insert.Bind(hash).Run());
  if (!old.empty()) sum.Remove(old);
  sum.Add(hash);
  return absl::OkStatus();
}

absl::Status Ledger::Remove(TableId table, const Row& key) {
  const TableSpec& spec = Spec(table);
  MOTLEY_ASSIGN_OR_RETURN(const std::string old, StoredHash(spec, key));
  if (old.empty()) return absl::OkStatus();
  Statement remove = database_.Prepare(absl::StrCat("DELETE FROM ", spec.name, " WHERE ", KeyCondition(spec)));
  for (size_t k = 0; k < spec.keys; ++k) Bind(remove, key[k]);
  MOTLEY_RETURN_IF_ERROR(remove.Run());
  state_.sums[static_cast<size_t>(table)].Remove(old);
  return absl::OkStatus();
}

absl::Status Ledger::Seal() {
  ++state_.mark.commits;
  const Row row = MarkRow(state_, version_);
  Statement write =
      database_.Prepare(absl::StrCat("INSERT OR REPLACE INTO mark VALUES (1,?,?,?,?", state_.secret.empty() ? ")" : ",?)"));
  for (const Value& value : row) Bind(write, value);
  return write.Bind(HashOf("mark", row)).Run();
}

void Ledger::SkipTo(int64_t commits) { state_.mark.commits = std::max(state_.mark.commits, commits); }

}  // namespace motley::coordinator
