#include "coordinator/store/sqlite.h"

#include <sqlite3.h>
#include <sys/resource.h>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace motley::coordinator {
namespace {

bool FilesAreLimited() {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement& Statement::Bind(int64_t value) {
  if (!status_.ok()) return *this;
  const int code = sqlite3_bind_int64(statement_.get(), next_bind_++, value);
  if (code != SQLITE_OK) status_ = database_->Error(code, "bind");
  return *this;
}

Statement& Statement::Bind(std::string_view value) {
  if (!status_.ok()) return *this;
  const int code = sqlite3_bind_text64(statement_.get(), next_bind_++, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) status_ = database_->Error(code, "bind");
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  if (!status_.ok()) return status_;
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  status_ = database_->Error(code, sqlite3_sql(statement_.get()));
  return status_;
}

absl::Status Statement::Run() { return Step().status(); }

int64_t Statement::Integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
int Statement::columns() const { return sqlite3_column_count(statement_.get()); }
bool Statement::IsInteger(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_INTEGER; }
bool Statement::IsText(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_TEXT; }
std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return text == nullptr ? "" : std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path, Mode mode) {
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | (mode == Mode::kServe ? SQLITE_OPEN_CREATE : 0);
  const int code = sqlite3_open_v2(path.empty() ? ":memory:" : path.c_str(), &handle, flags, nullptr);
  std::unique_ptr<Database> database(new Database(path, handle));
  if (code != SQLITE_OK) return database->Error(code, "open");
  // A damaged definition of a table must not run code, and a page that cannot be right is found when it is read.
  MOTLEY_RETURN_IF_ERROR(database->Execute("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;"));
  // Exclusive: a second coordinator on the same folder must fail, not share. WAL then needs no shared-memory file.
  MOTLEY_RETURN_IF_ERROR(database->Execute("PRAGMA locking_mode=EXCLUSIVE"));
  if (mode == Mode::kInspect) {
    database->LeaveLog();
    MOTLEY_RETURN_IF_ERROR(database->Execute("PRAGMA query_only=ON"));
    return database;
  }
  if (path.empty()) return database;
  MOTLEY_RETURN_IF_ERROR(database->Execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; BEGIN EXCLUSIVE; COMMIT;"));
  if (sqlite3_db_readonly(handle, "main") == 1) return database->Error(SQLITE_READONLY, "open");
  return database;
}

void Database::LeaveLog() { sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }

Database::~Database() { sqlite3_close_v2(handle_); }

absl::Status Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code, sql);
}

Statement Database::Prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  return Statement(this, statement, code == SQLITE_OK ? absl::OkStatus() : Error(code, sql));
}

absl::Status Database::Error(int code, std::string_view what) const {
  const std::string text = absl::StrCat(path_, ": ", handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_), " (",
                                        std::string(what.substr(0, 60)), ")");
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(absl::StrCat(text, "; free space on its disk"));
    case SQLITE_IOERR:
      if (handle_ == nullptr || sqlite3_extended_errcode(handle_) != SQLITE_IOERR_WRITE) return absl::InternalError(text);
      // What SQLite does not take for a full disk.
      return absl::ResourceExhaustedError(absl::StrCat(
          text, FilesAreLimited() ? ": this process may write no larger file; raise the limit (LimitFSIZE, ulimit -f)"
                                  : ": the write failed; is a quota used up, or its disk failing (dmesg)?"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          absl::StrCat(text, "; put a backup in its place (motley-coordinator restore), or move it away to begin without jobs"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(absl::StrCat(text, "; another coordinator uses this state folder"));
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return absl::PermissionDeniedError(absl::StrCat(text, "; the folder must exist and be writable"));
    case SQLITE_CONSTRAINT:
      return absl::AlreadyExistsError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace motley::coordinator
