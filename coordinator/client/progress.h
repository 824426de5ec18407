// Prints a job's updates as they come: states, step lines, events.
#pragma once

#include <ostream>
#include <string>

#include "coordinator/client/exit_code.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::client {

// Not thread-safe.
class Progress {
 public:
  // `log_freq`: every so many steps one line; the last step and those with a validation loss always.
  Progress(std::ostream& out, int64_t steps, int64_t log_freq) : out_(out), steps_(steps), log_freq_(log_freq) {}
  void Show(const v1::JobUpdate& update);

 private:
  void ShowState(const v1::Job& job);

  std::ostream& out_;
  int64_t steps_, log_freq_;
  std::string shown_state_;
};

// How a job ended, as one sentence and an exit code.
Exit EndOf(const v1::Job& job, std::ostream& out);

}  // namespace motley::client
