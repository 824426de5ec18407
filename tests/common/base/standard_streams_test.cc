#include "common/base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

// What `act` returns in a process without these descriptors.
int Without(const std::vector<int>& closed, const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : closed) close(number);
    HoldStandardStreams();
    _exit(act());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreams, NoFileGetsTheirNumbers) {
  TempFolder folder;
  for (const std::vector<int>& closed : std::vector<std::vector<int>>{{}, {0}, {1}, {2}, {0, 2}, {0, 1, 2}}) {
    EXPECT_EQ(Without(closed,
                      [path = folder / "file"] {
                        const int file = open(path.c_str(), O_CREAT | O_RDWR, 0600);
                        return file <= STDERR_FILENO ? 1 : 0;
                      }),
              0)
        << closed.size() << " closed";
  }
}

TEST(StandardStreams, WhatWasClosedCannotBeReadOrWritten) {
  EXPECT_EQ(Without({0, 1, 2},
                    [] {
                      char byte = 0;
                      for (const int number : {STDOUT_FILENO, STDERR_FILENO}) {
                        if (write(number, &byte, 1) != -1 || errno != EBADF) return 1;
                      }
                      return read(STDIN_FILENO, &byte, 1) == -1 && errno == EBADF ? 0 : 2;
                    }),
            0);
}

TEST(StandardStreams, WhatIsOpenStays) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(Without({0, 2},
                    [&] {
                      if (dup2(ends[1], STDOUT_FILENO) < 0) return 1;
                      HoldStandardStreams();
                      return write(STDOUT_FILENO, "x", 1) == 1 ? 0 : 2;
                    }),
            0);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace motley
