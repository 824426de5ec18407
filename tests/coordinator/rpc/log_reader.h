// What the process of a test logs, to be waited for.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/logging.h"

namespace motley::coordinator {

// For as long as it lives. Takes its descriptors at once.
class LogReader {
 public:
  LogReader() {
    EXPECT_EQ(pipe2(pipe_, O_CLOEXEC), 0);
    before_ = dup(STDERR_FILENO);
    dup2(pipe_[1], STDERR_FILENO);
    InitLogging("test", LogLevel::kInfo);
  }
  ~LogReader() {
    dup2(before_, STDERR_FILENO);
    for (const int fd : {pipe_[0], pipe_[1], before_}) close(fd);
  }
  // Until these words were logged, or patience ends.
  testing::AssertionResult WaitFor(const std::string& words, absl::Duration patience) {
    const absl::Time end = absl::Now() + patience;
    while (seen_.find(words) == std::string::npos) {
      pollfd polled = {pipe_[0], POLLIN, 0};
      const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
      if (left <= 0) return testing::AssertionFailure() << "logged: " << seen_;
      if (poll(&polled, 1, static_cast<int>(left)) <= 0) continue;
      char text[4096];
      const ssize_t bytes = read(pipe_[0], text, sizeof(text));
      if (bytes > 0) seen_.append(text, static_cast<size_t>(bytes));
    }
    return testing::AssertionSuccess();
  }

 private:
  int pipe_[2] = {-1, -1};
  int before_ = -1;
  std::string seen_;
};

}  // namespace motley::coordinator
