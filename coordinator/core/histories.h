// The jobs' curves in memory, and when they are stored: with a commit of their job that is made anyway, when a bucket was begun
// since or a minute has passed, and with the one that ends it. So a job stores as many as it has had buckets, or one a minute.
// Used on the loop only.
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
  struct Entry {
    History history;
    bool changed = false;                     // since it was stored
    bool unread = false;                      // what is stored could not be read now: it stays, and is tried again
    std::optional<absl::Duration> stored_at;  // steady
    int64_t stored_bucket = 0;                // the first step behind its last bucket
  };
  Entry& EntryOf(const JobId& job);
  static int64_t LastBucket(const History& history) {
    return static_cast<int64_t>(history.buckets().size()) * history.steps_per_bucket();
  }

  const Clock& clock_;
  Store& store_;
  std::map<JobId, Entry> entries_;
};

}  // namespace motley::coordinator
