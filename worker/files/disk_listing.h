// What lies beneath this node's [files] local, whosever, and its end where nobody wants it any more.
// docs/inside/local-storage.md
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/session/files.h"

namespace motley::worker {

// So many things are said; the coordinator says how many more there are.
inline constexpr size_t kMostListed = 5000;

// By job and name, then inputs by name: each checkpoint, and what else a job has (tb, steps), with the bytes that it takes of the
// disk. A resume folder is links and holes of these, and is left out.
std::vector<ListedFiles> ListDisk(const std::string& local);

// Deletes what lies here of these jobs. INVALID_ARGUMENT: no id, or no uid, that a job may have; Fault::kStorage.
absl::Status RemoveUnwanted(const std::string& local, const UnwantedFiles& unwanted);

}  // namespace motley::worker
