// The schedule of a lane of transfers: the links say when each of them ended (link_clock.h), the lane only where it may begin.
// One thread: the lane's. A communicator has one for each of its lanes.
#pragma once

#include <algorithm>
#include <optional>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/engine/lanes/lane_pacer.h"

namespace motley::engine {

class TransferPacer : public LanePacer {
 public:
  explicit TransferPacer(const Clock& clock) : clock_(clock) {}

  void Begin(absl::Duration ready) override {
    start_ = std::max(end_, ready);
    told_.reset();
  }
  // What no link said the end of, ends when it ends.
  void End(std::optional<double>) override {
    end_ = told_.value_or(clock_.Now());
    busy_seconds_ += absl::ToDoubleSeconds(end_ - start());
    start_.reset();
  }
  absl::Duration end() const override { return end_; }

  // For the communicator: when the data of the call under way was there, and when its result was. Outside of a lane: now.
  absl::Duration start() const { return start_.value_or(clock_.Now()); }
  void EndAt(absl::Duration end) { told_ = end; }

  // From Begin to End, in all, by the schedule.
  double busy_seconds() const { return busy_seconds_; }
  void ResetCounters() { busy_seconds_ = 0; }

 private:
  const Clock& clock_;
  std::optional<absl::Duration> start_, told_;
  absl::Duration end_;
  double busy_seconds_ = 0;
};

}  // namespace motley::engine
