// A new database from what is sound in another one, older or damaged. A job whose record is lost or altered becomes FAILED and
// says so; nothing that is not what was written is taken over.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/state/event.h"
#include "coordinator/store/inspect.h"

namespace motley::coordinator {

// A finding as people see it among the events.
EventRecord EventFor(const StoreFinding& finding, int64_t sequence);

// Writes the database at `path`, which must not be there, and closes it; it counts commits from `start` on, whose secret it gets.
// `inspection` is that of `from`, empty for a version without hashes. Returns the inspection's findings and what became of the
// jobs; the new database has them as events.
absl::StatusOr<std::vector<StoreFinding>> Rebuild(const Database& from, int64_t version, const Inspection& inspection,
                                                  const LedgerState& start, const std::string& path);

}  // namespace motley::coordinator
