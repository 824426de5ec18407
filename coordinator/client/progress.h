// Prints a job's updates as they come: states, step lines, events. On a terminal the steps are one line that is written again.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "coordinator/client/exit_code.h"
#include "coordinator/client/screen.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::client {

// Not thread-safe.
class Progress {
 public:
  // `log_freq`: every so many steps one line; the last step and those with a validation loss always.
  Progress(std::ostream& out, int64_t steps, int64_t log_freq, const Screen& screen = {})
      : out_(out), steps_(steps), log_freq_(log_freq), screen_(screen) {}
  ~Progress() {
    PrintFailure();
    Clear();
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Each state and event once, in order. The state in which a job ends is left to EndOf, and so is a failure that it repeats.
  void Show(const v1::JobUpdate& update);
  // Takes the moving line away: what is printed next has a line of its own.
  void Clear();

 private:
  void ShowJob(const v1::Job& job);
  void ShowStep(const v1::StepRecord& step);
  void Line(const std::string& text);
  void Live(const std::string& text);
  void PrintFailure();

  std::ostream& out_;
  const int64_t steps_, log_freq_;
  const Screen screen_;
  int64_t cursor_ = 0;
  bool begun_ = false;
  // The state with which a stream begins: the kept updates that follow lead up to it.
  std::optional<v1::Job> greeting_;
  std::optional<v1::Event> failure_;  // not printed yet: the job may end with the same words
  std::string shown_state_;
  bool live_ = false;  // a moving line is there
};

// How a job ended, as one sentence and an exit code.
Exit EndOf(const v1::Job& job, std::ostream& out, const Screen& screen = {});

}  // namespace motley::client
