// What pages look at, printed once for all of them. A page asks for what is new behind its cursor; nothing is held for it, and
// what nobody asks for is not made. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace motley::coordinator {

// "cluster", "job/ID", "simulated/ID" or "measured/ID". One that was forgotten and is looked at again has another number.
struct PageTopic {
  std::string name;
  int64_t number = 0;
};

// How a topic stands now; everything is JSON. Rows that are in neither `rows` nor `same` are gone.
struct PageNews {
  bool anew = false;  // it is another thing than before: what it had is forgotten
  std::map<std::string, std::string> rows;
  std::set<std::string> same;                             // names of rows that have not changed
  std::string history;                                    // empty: as before
  std::map<std::string, std::vector<std::string>> lists;  // by name ("steps"): what was added since the news before
};

class PageBoard {
 public:
  // `life` and `page`: as PrintPage takes them.
  PageBoard(const Clock& clock, std::string life, std::string page)
      : clock_(clock), life_(std::move(life)), page_(std::move(page)) {}

  // What is new behind `after`, or everything for a cursor that another life gave. Null: nothing is known yet; from now on it is
  // looked at, so ask again soon. RESOURCE_EXHAUSTED: too many others are looked at.
  absl::StatusOr<std::shared_ptr<const std::string>> Read(const std::string& topic, int64_t after, absl::string_view life);

  // Those that were read within kLookedAt. What was not is forgotten.
  std::vector<PageTopic> LookedAt();
  // Of a topic that was forgotten meanwhile it does nothing.
  void Publish(const PageTopic& topic, PageNews news);

  static constexpr absl::Duration kLookedAt = absl::Seconds(10);
  static constexpr size_t kMostTopics = 64;
  static constexpr size_t kMostEntries = 1000;  // of each list; the oldest go

 private:
  struct Row {
    int64_t cursor = 0;
    std::string json;  // empty: it is gone
  };
  struct Entry {
    int64_t cursor = 0;
    std::string json;
  };
  struct Topic {
    int64_t number = 0;
    absl::Duration read;   // steady: the last time
    int64_t cursor = 0;    // 0: nothing is known yet
    int64_t complete = 0;  // behind an older cursor something may be missing
    std::map<std::string, Row> rows;
    std::map<std::string, std::deque<Entry>> lists;
    std::string history;
    std::map<int64_t, std::shared_ptr<const std::string>> printed;  // by `after`, since the newest news
  };
  std::shared_ptr<const std::string> Print(const Topic& topic, int64_t after) const;
  // True: something has changed.
  static bool TakeRows(PageNews& news, int64_t cursor, Topic& topic);
  static void Append(std::vector<std::string> news, std::deque<Entry>* to, Topic& topic);
  static void ForgetGone(Topic& topic);
  void ForgetUnread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const std::string life_, page_;
  absl::Mutex mutex_;
  int64_t newest_ ABSL_GUARDED_BY(mutex_) = 0;  // cursor of all topics, and number of topics
  std::map<std::string, Topic> topics_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace motley::coordinator
