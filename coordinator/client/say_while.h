// What takes longer than two seconds says so.
#pragma once

#include <ostream>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace motley::client {

// As long as it lives, after `first` and then every `pause`, a line to `out` with the seconds so far: "<what> (4 s so far)".
// Nobody else writes to `out` meanwhile.
class SayWhile {
 public:
  SayWhile(std::ostream& out, std::string what, absl::Duration first = absl::Seconds(2),
           absl::Duration pause = absl::Seconds(10));
  ~SayWhile();
  SayWhile(const SayWhile&) = delete;
  SayWhile& operator=(const SayWhile&) = delete;

 private:
  absl::Notification ended_;
  std::thread thread_;
};

}  // namespace motley::client
