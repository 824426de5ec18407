// What is done to a store from outside: checked, copied, put back. Each is for a command of motley-coordinator.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/session/session.h"
#include "common/tls/term.h"
#include "coordinator/store/inspect.h"

namespace motley::coordinator {

struct StoreSummary {
  int64_t version = 0;
  StoreMark mark;
  std::array<int64_t, kNumTables> rows = {};
  std::vector<StoreFinding> findings;  // empty: it is what was written
};
// Reads everything and changes nothing. NOT_FOUND: no store there; UNAVAILABLE: a coordinator uses it; DATA_LOSS: it cannot be
// opened; FAILED_PRECONDITION: another schema version.
absl::StatusOr<StoreSummary> CheckStore(const std::string& folder);

// A sound copy of the store as one file, also while a coordinator uses it: a copy that was taken in the middle of a write does
// not agree with its mark, and is taken again. NOT_FOUND, ALREADY_EXISTS (`to`), DATA_LOSS: the store is damaged; errors of
// files.
absl::StatusOr<StoreSummary> BackUpStore(const std::string& folder, const std::string& to);

struct RestoreOptions {
  std::string from;        // a backup
  bool take_over = false;  // the coordinator of this folder gets a term above all that are known here
};
struct RestoredStore {
  StoreSummary summary;
  int64_t lost_commits = -1;  // made after the backup; -1: not known
  int64_t raised_jobs = 0;    // not finished: their epochs went up
  int64_t raised_by = 0;
  std::string aside;  // where the database from before is; empty: there was none
  Term term;          // with take_over
};
// Puts a backup in place of the folder's database. Epochs go up by what may have been begun since. UNAVAILABLE: a coordinator
// uses the folder; NOT_FOUND: no such file; DATA_LOSS: the backup is damaged, nothing was changed; FAILED_PRECONDITION: another
// schema version.
absl::StatusOr<RestoredStore> RestoreStore(const std::string& folder, const RestoreOptions& options);

}  // namespace motley::coordinator
