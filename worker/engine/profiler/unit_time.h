// What of a unit's measurements fits the time that is left of a device's profile (docs/inside/profiles.md).
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "worker/engine/profiler/profile_time.h"

namespace motley::engine {

// Counts in runs of the unit's whole passes at the size that is measured. A size has as many series of runs as `series` says in
// the calls, the first of the whole passes; each takes one run that does not count and one that does, or more of these.
// Until the first run has ended, and without an end, everything fits. Not thread-safe.
class UnitTime {
 public:
  // `end`: when the unit must be done. `time` must outlive it.
  UnitTime(ProfileTime& time, absl::Duration end) : time_(time), end_(end) {}

  absl::Duration Now() const { return time_.Now(); }
  // The first run of a size has ended.
  void RunTook(absl::Duration run) { run_ = run; }
  // A size has, and took so long.
  void SizeTook(int64_t samples, absl::Duration took) { took_[samples] = took; }

  // Asked when the first run of a size has ended: is there time for the series after the first? Of the first size alone: those of
  // the others belong to it.
  bool OthersFit(size_t series);
  // How many runs, `wanted` at most, of the series with that number. 0, of the first alone: its first run counts.
  int RepeatsThatFit(size_t number, size_t series, int wanted);
  // Of `samples`, the next size.
  bool NextSizeFits(int64_t samples, size_t series);
  bool AgainFits(int64_t samples);

  // Says it to the profile; nothing where all was measured.
  void SayLeftOut(const std::string& unit);

 private:
  double RunsLeft() const { return absl::FDivDuration(end_ - Now(), run_); }
  // After the series with that number, until the unit has two sizes.
  double RunsNeededAfter(size_t number, size_t series) const;

  ProfileTime& time_;
  const absl::Duration end_;
  absl::Duration run_;                      // zero: none has ended
  std::map<int64_t, absl::Duration> took_;  // by samples
  std::set<std::string> left_out_;
};

}  // namespace motley::engine
