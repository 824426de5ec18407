// Takes from the loop what pages look at, twice a second while any does, and has it printed elsewhere. docs/inside/page.md
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "coordinator/core/core.h"
#include "coordinator/page/page_board.h"
#include "coordinator/rpc/trace_step.h"

namespace motley::coordinator {

struct PageDraft;  // messages that are still to be printed

// Used on the loop only.
class PageFeed {
 public:
  // `print` runs its argument on another thread, in order; both must outlive what it was given.
  PageFeed(Core& core, PageBoard& board, std::function<void(std::function<void()>)> print);
  ~PageFeed();

  // A periodic job, several times a kEvery.
  void UpdatePages();

  static constexpr absl::Duration kEvery = absl::Milliseconds(500);
  static constexpr absl::Duration kLanesEvery = absl::Seconds(5);
  static constexpr absl::Duration kMemoryEvery = absl::Seconds(30);   // reads the plan and a profile of each device
  static constexpr absl::Duration kHistoryEvery = absl::Seconds(10);  // for pages that begin

 private:
  // How far a topic's pages have been told.
  struct Told {
    int64_t number = 0;  // of the topic
    absl::Duration at;   // steady
    std::shared_ptr<std::atomic<bool>> printing = std::make_shared<std::atomic<bool>>(false);
    std::string uid;                                            // of the job; empty: none
    std::map<std::string, std::string> marks;                   // by row: what tells that it cannot have changed
    std::map<std::string, std::optional<absl::Duration>> when;  // by row: when it was told last
    std::optional<int64_t> step, line, event;                   // cursors; nothing: not yet
    std::unique_ptr<TraceStepSource> measured;
  };
  void Gather(const PageTopic& topic, Told& told);
  void GatherCluster(Told& told, PageDraft& draft);
  void GatherJob(const JobRecord& job, Told& told, PageDraft& draft);
  void GatherRanks(const JobRecord& job, Told& told, PageDraft& draft);
  void GatherNews(const JobRecord& job, Told& told, PageDraft& draft);
  void GatherPlan(const JobRecord& job, const std::string& row, Told& told, PageDraft& draft);
  void GatherMeasured(const JobRecord& job, Told& told, PageDraft& draft);
  // Whether the row is to be told; else it is the same.
  bool IsDue(const std::string& row, absl::Duration every, Told& told, PageDraft& draft);
  static bool IsNews(const std::string& row, std::string mark, Told& told, PageDraft& draft);

  Core& core_;
  PageBoard& board_;
  const std::function<void(std::function<void()>)> print_;
  std::map<std::string, Told> told_;  // by the topic's name
};

}  // namespace motley::coordinator
