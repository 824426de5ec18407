// Time that has certainly passed: what the steady clock counted while a coordinator ran on this state folder, and between two of
// its runs without a start of the machine between. The wall clock, which may jump, adds nothing. By it finished jobs are kept,
// and tokens end that no wall clock may make good again.
//
// A small file of its own in the state folder (coordinator.time), not a part of the store: it is written whether or not anything
// happens. Without it, or with one that was altered, things are as new as their first look. Used on the loop only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace motley::coordinator {

// Of the machine since its start; empty where the kernel does not say it.
std::string BootId();

class CountedTime {
 public:
  CountedTime(std::string path, const Clock& clock);

  // Goes on with what the file says. One that cannot be read, or is not what was written, is logged and replaced later. `boot`:
  // BootId(), or a test's.
  void Load(std::string boot);
  // No steady clock counted since the file was written: the machine was started anew, or there was no file.
  bool has_gap() const { return has_gap_; }
  // There is a gap, and the wall clock stands before the time at which the file was written: how long it was is not known.
  bool wall_went_back() const { return wall_went_back_; }

  // How long ago the thing was first asked for; then it was `at_first` old already.
  absl::Duration AgeOf(const std::string& thing, absl::Duration at_first = absl::ZeroDuration());
  // The thing is certainly this old, whatever was counted.
  void IsAtLeast(const std::string& thing, absl::Duration age);
  // Of the things whose names begin with `kind` those that do not exist any more go.
  void Keep(std::string_view kind, const std::function<bool(const std::string& thing)>& exists);

  // What was counted so far, on disk.
  absl::Status Save();
  // The same, when the last time is an hour ago: so much is lost at most when the machine ends.
  void SaveNowAndThen();

 private:
  absl::Duration Now() const { return counted_ + clock_.Now() - since_; }
  absl::Status Parse(std::string_view text);

  const std::string path_;
  const Clock& clock_;
  std::string boot_;
  absl::Duration counted_;  // at `since_`, of the steady clock
  absl::Duration since_;
  absl::Duration saved_;
  std::map<std::string, absl::Duration> begun_;  // by thing, in counted time
  bool has_gap_ = true, wall_went_back_ = false;
};

}  // namespace motley::coordinator
