// How long the profile of one device may take, and what was left out of it for that (docs/inside/profiles.md).
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"

namespace motley::engine {

// One for each profile, which begins with it. Not thread-safe.
class ProfileTime {
 public:
  explicit ProfileTime(const Clock& clock) : clock_(clock), start_(clock.Now()) {}

  absl::Duration Now() const { return clock_.Now(); }
  absl::Duration spent() const { return Now() - start_; }
  // From the start; before, there is no limit.
  void set_limit(absl::Duration limit) { limit_ = limit; }
  // When a part is to be over that takes `share` of what is left of the limit. InfiniteDuration: there is none.
  absl::Duration EndOf(double share) const {
    const absl::Duration now = Now();
    return now + std::max(absl::ZeroDuration(), limit_ - (now - start_)) * share;
  }

  void LeaveOut(std::string what) { left_out_.push_back(std::move(what)); }
  bool cut_short() const { return !left_out_.empty(); }
  // "cut short after 58 s, not measured: layer: repeated runs; head: microbatches from 2"; empty: all was measured.
  std::string CutShortText() const;

 private:
  const Clock& clock_;
  const absl::Duration start_;
  absl::Duration limit_ = absl::InfiniteDuration();
  std::vector<std::string> left_out_;
};

}  // namespace motley::engine
