// Compares a job's prepared tokens with the digests that were written with them, beside the job: its steps do not wait for
// gigabytes. One rank of each node does it.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/data/dataset.h"
#include "common/session/assignment.h"

namespace motley::engine {

// The first of its node's ranks.
bool ProvesData(const RankAssignment& assignment);

class DataProver {
 public:
  // Begins at once, with what the machine has to spare. All must outlive the prover.
  explicit DataProver(std::vector<const Dataset*> data);
  ~DataProver();  // stops
  DataProver(const DataProver&) = delete;
  DataProver& operator=(const DataProver&) = delete;

  // What was found so far; never waits. Errors are this node's (Fault::kNode), but those of Fault::kStorage.
  absl::Status Found() const;
  // Waits for its end.
  absl::Status Await();

 private:
  void Run(const std::vector<const Dataset*>& data);

  std::atomic<bool> stop_{false};
  mutable absl::Mutex mutex_;
  absl::Status found_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses the others
};

}  // namespace motley::engine
