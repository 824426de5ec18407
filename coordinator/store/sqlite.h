// SQLite behind absl::Status: a connection and a statement, no more than the store needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace motley::coordinator {

class Database;

// One prepared statement. Binds count from 1 in the order of the calls. A failed bind or step is kept and returned by Step.
class Statement {
 public:
  Statement(Statement&&) = default;
  Statement& operator=(Statement&&) = default;

  Statement& Bind(int64_t value);
  Statement& Bind(std::string_view value);
  // True: a row is there; false: done.
  absl::StatusOr<bool> Step();
  // Runs a statement that returns no rows.
  absl::Status Run();

  int64_t Integer(int column) const;  // from 0
  std::string Text(int column) const;
  int columns() const;  // of a row
  bool IsInteger(int column) const;
  bool IsText(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(const Database* database, sqlite3_stmt* statement, absl::Status status)
      : database_(database), statement_(statement), status_(std::move(status)) {}
  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  absl::Status status_;
  int next_bind_ = 1;
};

// Not thread-safe.
class Database {
 public:
  enum class Mode {
    kServe,    // created if it is missing
    kInspect,  // never written: what its log holds is seen, and stays in the log
  };
  // It is this process's alone until closed: UNAVAILABLE when another one has it. An empty path is a database in memory.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path, Mode mode = Mode::kServe);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  absl::Status Execute(const std::string& sql);
  // Closing leaves file and log as they are: they are to be moved away, not mended.
  void LeaveLog();
  const std::string& path() const { return path_; }
  Statement Prepare(std::string_view sql) const;
  // SQLite's newest error as a status that names the file and `what`.
  absl::Status Error(int code, std::string_view what) const;

 private:
  Database(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}
  std::string path_;
  sqlite3* handle_;
};

}  // namespace motley::coordinator
