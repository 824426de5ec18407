// The jobs' curves in memory, and when they are stored: with a commit of their job that is made anyway, at most once a minute
// where they are long, and with the one that ends it. Used on the loop only.
#pragma once

#include <map>
#include <optional>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "coordinator/state/history.h"
#include "coordinator/store/store.h"

namespace motley::coordinator {

class Histories {
 public:
  Histories(const Clock& clock, Store& store) : clock_(clock), store_(store) {}

  void Add(const JobId& job, const StepStats& step);
  // Of a job that has none it is empty. One that is damaged is said in the log and begins anew.
  const History& Of(const JobId& job) { return EntryOf(job).history; }
  // Before a batch is committed, and after that.
  void AddDue(Batch* batch);
  void Stored(const Batch& batch);
  void Forget(const JobId& job) { entries_.erase(job); }

 private:
  static constexpr absl::Duration kStoredEvery = absl::Minutes(1);
  static constexpr size_t kShortBytes = 4096;  // goes with every commit
  struct Entry {
    History history;
    bool changed = false;                     // since it was stored
    bool unread = false;                      // what is stored could not be read now: it stays, and is tried again
    std::optional<absl::Duration> stored_at;  // steady
  };
  Entry& EntryOf(const JobId& job);

  const Clock& clock_;
  Store& store_;
  std::map<JobId, Entry> entries_;
};

}  // namespace motley::coordinator
