// Every write to the database goes through here: each row is stored with its hash, each table's hashes are summed up, each
// commit is counted, and all of it stands in one row, the mark. A row that was altered, lost or brought back from an older state
// then does not agree with it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/session/session.h"
#include "coordinator/store/row.h"
#include "coordinator/store/sqlite.h"

namespace motley::coordinator {

inline constexpr int64_t kSchemaVersion = 15;
// Since this one rows carry their hash, and there is a mark.
inline constexpr int64_t kHashedVersion = 2;
// Since this one the mark holds the secret of NumberKey.
inline constexpr int64_t kKeyVersion = 6;
// Since this one jobs have a uid.
inline constexpr int64_t kJobUidVersion = 10;
// Tables, mark and version of an empty database, without a transaction around them; also as older versions had them.
std::string CreateSql(int64_t version = kSchemaVersion);
// The definitions as the database has them, for comparison with those of a new one.
absl::StatusOr<std::string> ReadDefinitions(const Database& database);
absl::StatusOr<std::string> ExpectedDefinitions(int64_t version);

struct LedgerState {
  StoreMark mark;
  TableSums sums;
  std::string secret;  // of NumberKey, made with the store; empty before version 6
  friend bool operator==(const LedgerState&, const LedgerState&) = default;
};
// The mark row as written. DATA_LOSS: it is not there, or its own hash does not fit.
absl::StatusOr<LedgerState> ReadMark(const Database& database, int64_t version = kSchemaVersion);

// Not thread-safe. Used inside a transaction of its database; after a rollback the state from before is put back with Reset.
class Ledger {
 public:
  explicit Ledger(const Database& database, int64_t version = kSchemaVersion) : database_(database), version_(version) {}

  // Inserts the row, or replaces the one with its key.
  absl::Status Put(TableId table, const Row& row);
  // Removes the row with this key, if it is there.
  absl::Status Remove(TableId table, const Row& key);
  // The commit's number and the sums, as the last write of a transaction.
  absl::Status Seal();

  const LedgerState& state() const { return state_; }
  void Reset(LedgerState state) { state_ = std::move(state); }
  // The next commits count from above this.
  void SkipTo(int64_t commits);

 private:
  // The hash that is stored with the row of this key; empty: there is none.
  absl::StatusOr<std::string> StoredHash(const TableSpec& spec, const Row& key);

  const Database& database_;
  const int64_t version_;  // of the database
  LedgerState state_;
};

}  // namespace motley::coordinator
