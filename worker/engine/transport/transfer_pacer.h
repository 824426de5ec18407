// The schedule of a lane of transfers: the links say when each of them ended (link_clock.h), the lane only where it may begin.
// One thread: the lane's. A communicator has one for each of its lanes.
#pragma once

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/engine/lanes/lane_pacer.h"

namespace motley::engine {

class TransferPacer : public LanePacer {
 public:
  explicit TransferPacer(const Clock& clock) : clock_(clock) {}

  void Begin(absl::Duration ready) override {
    start_ = std::max(end_, ready);
    told_begin_.reset();
    told_end_.reset();
  }
  // What no link said the end of, ends when it ends.
  void End(std::optional<double>) override {
    end_ = told_end_.value_or(clock_.Now());
    begin_ = told_begin_.value_or(start());
    start_.reset();
  }
  absl::Duration begin() const override { return begin_; }
  absl::Duration end() const override { return end_; }

  // For the communicator: when the data of the call under way was there. Outside of a lane: now.
  absl::Duration start() const { return start_.value_or(clock_.Now()); }
  // When it began to move, later than start() where a peer was awaited, and when its result was there.
  void Took(absl::Duration begin, absl::Duration end) {
    told_begin_ = begin;
    told_end_ = end;
  }
  // The result was there later than was said.
  void TookUntil(absl::Duration end) { told_end_ = end; }

 private:
  const Clock& clock_;
  std::optional<absl::Duration> start_, told_begin_, told_end_;
  absl::Duration begin_, end_;
};

// A call that one communicator has another make: begins where the caller's lane says, and its times are the caller's.
template <typename Call>
absl::Status Forwarded(TransferPacer& own, TransferPacer& others, Call call) {
  others.Begin(own.start());
  absl::Status status = call();
  others.End(std::nullopt);
  if (status.ok()) own.Took(others.begin(), others.end());
  return status;
}

}  // namespace motley::engine
