// Compares a job's prepared tokens with the digests that were written with them, beside the job: its steps do not wait for
// gigabytes. One rank of each node does it.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/steady_condition.h"
#include "common/data/dataset.h"
#include "common/session/assignment.h"

namespace motley::engine {

// The first of its node's ranks.
bool ProvesData(const RankAssignment& assignment);

class DataProver {
 public:
  // Begins at once, with what the machine has to spare. What is `known` is not read again; null: all is read. All must outlive
  // the prover. `before` is called first of all, on the prover's thread.
  DataProver(std::vector<const Dataset*> data, KnownParts* known, std::function<void()> before = {});
  ~DataProver();  // stops
  DataProver(const DataProver&) = delete;
  DataProver& operator=(const DataProver&) = delete;

  // What was found so far; never waits. Errors are this node's (Fault::kNode), but those of Fault::kStorage.
  absl::Status Found() const;
  // Whether it is over, after so long at most.
  bool IsOverWithin(absl::Duration patience);

  int64_t bytes() const { return proof_.bytes; }  // that are through
  int64_t all_bytes() const { return all_bytes_; }
  // How long it still takes at the pace so far; 0 where that is not known yet.
  absl::Duration Left() const;

 private:
  void Run();
  absl::Status Compare();

  const std::vector<const Dataset*> data_;
  const int64_t all_bytes_, begin_ns_;
  const std::function<void()> before_;
  Proof proof_;
  SteadyCondition changed_;
  mutable absl::Mutex mutex_;
  absl::Status found_ ABSL_GUARDED_BY(mutex_);
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace motley::engine
