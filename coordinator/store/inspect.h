// Whether a database holds what was written to it: definitions, structure, every row's hash, and the mark.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "coordinator/store/ledger.h"
#include "coordinator/store/row.h"
#include "coordinator/store/sqlite.h"

namespace motley::coordinator {

// What is not as it was written, as a sentence for people.
struct StoreFinding {
  std::string kind;  // of the event that says it: kind::kStoreDamaged or kind::kStoreOlder
  std::string text;
  JobId job;  // empty: not about one job
};

struct Inspection {
  LedgerState state;  // the sums as counted from the rows; mark and secret are empty when they cannot be read
  std::vector<StoreFinding> findings;
  std::array<int64_t, kNumTables> missing = {};  // rows that the mark counts and are not there
  bool sound() const { return findings.empty(); }
};

// 0: nothing was ever written to this file. DATA_LOSS: tables without a version.
absl::StatusOr<int64_t> ReadVersion(const Database& database);

// The columns of a result from `begin` on as a row of `spec`. Columns that the version of the file did not have are 0 or empty.
// Returns the hash of what the file holds; empty when that is not what was written, by types, number of columns or stored hash.
std::string ReadRow(const Statement& statement, const TableSpec& spec, int begin, int64_t version, Row* row);

// All rows that can be read, oldest first; past damage it goes on from the other end. The hash is empty for a row that is not
// what was written. An error is what stopped the reading, after everything else was seen.
using RowSink = std::function<void(const Row& row, const std::string& hash)>;
absl::Status Scan(const Database& database, TableId table, int64_t version, const RowSink& sink);

// Reads everything, of a version that has hashes. DATA_LOSS: not even that can be said.
absl::StatusOr<Inspection> Inspect(const Database& database, int64_t version = kSchemaVersion);

}  // namespace motley::coordinator
