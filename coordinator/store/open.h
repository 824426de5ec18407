// From the files of a state folder to a database that may be used: what is damaged is mended or said, what is older is noticed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/store/inspect.h"
#include "coordinator/store/ledger.h"
#include "coordinator/store/mark_file.h"
#include "coordinator/store/state_folder.h"

namespace motley::coordinator {

// What the mark file says against the database. `lost_commits`: so many are known to be gone.
struct Comparison {
  std::vector<StoreFinding> findings;
  int64_t lost_commits = 0;
};
Comparison CompareWithMark(const StoreMark& database, const MarkFile::Content& file);

struct OpenedDatabase {
  std::unique_ptr<Database> database;
  LedgerState state;
  std::vector<StoreFinding> said;    // they are events in the database already
  std::vector<StoreFinding> unsaid;  // the first commit has to hold them
  int64_t lost_commits = 0;          // as many epochs may have been begun that the database does not know
  int64_t count_from = 0;            // the first commit is counted above this
};
// FAILED_PRECONDITION: another schema version; DATA_LOSS: nothing in it can be read.
absl::StatusOr<OpenedDatabase> OpenDatabase(StateFolder& folder);

// 16 random hexadecimal digits: one for each database that was made from nothing.
std::string NewStoreId();

}  // namespace motley::coordinator
