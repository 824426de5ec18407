#include "coordinator/rpc/list_events.h"

#include <vector>

#include "common/base/status_macros.h"
#include "coordinator/rpc/find_job.h"
#include "coordinator/rpc/views.h"

namespace motley::coordinator {
namespace {

constexpr int kPage = 50;  // of at most 8 KiB each

}  // namespace

absl::StatusOr<Pull> ListEventsSource::Next(Core& core, v1::Event* out) {
  if (page_.empty()) {
    if (!job_.empty()) MOTLEY_RETURN_IF_ERROR(FindJob(core, job_.value()).status());
    MOTLEY_ASSIGN_OR_RETURN(std::vector<EventRecord> events, core.store.EventsAfter(job_, after_, kPage));
    if (events.empty()) return follow_ ? Pull::kWait : Pull::kEnd;
    page_.assign(events.begin(), events.end());
  }
  *out = View(page_.front());
  after_ = page_.front().sequence;
  page_.pop_front();
  return Pull::kMessage;
}

}  // namespace motley::coordinator
