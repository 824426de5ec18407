#include "common/base/stop_signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <thread>

#include "tests/common/base/temp_folder.h"

namespace motley {
namespace {

// What `act` returns in a process of its own, whose signals nobody else has; negative: the signal that ended it.
int InAChild(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(act());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(StopSignals, WhatAsksToEndIsTakenAndNotTheEnd) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM}) {
    EXPECT_EQ(InAChild([number] {
                signal(number, SIG_DFL);
                const sigset_t signals = BlockStopSignals();
                raise(number);
                const timespec at_once = {};
                return sigtimedwait(&signals, nullptr, &at_once);
              }),
              number);
  }
}

// gRPC's, of a worker that joins and then goes on as one.
TEST(StopSignals, AThreadFromBeforeHandsOnWhatItIsSent) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    EXPECT_EQ(InAChild([number] {
                signal(number, SIG_DFL);
                std::thread([] {
                  while (true) pause();
                }).detach();
                const sigset_t signals = BlockStopSignals();
                kill(getpid(), number);  // this thread blocks it
                const timespec patience = {50, 0};
                return sigtimedwait(&signals, nullptr, &patience);
              }),
              number);
  }
}

TEST(StopSignals, WhoBlocksThemNoMoreIsEndedByThem) {
  EXPECT_EQ(InAChild([] {
              signal(SIGTERM, SIG_DFL);
              const sigset_t signals = BlockStopSignals();
              pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
              raise(SIGTERM);
              return 0;
            }),
            -SIGTERM);
}

TEST(StopSignals, WhatIsIgnoredFromTheStartStaysSo) {
  for (const int number : {SIGHUP, SIGUSR1, SIGUSR2, SIGALRM}) {
    EXPECT_EQ(InAChild([number] {
                signal(number, SIG_IGN);
                const sigset_t signals = BlockStopSignals();
                raise(number);
                const timespec at_once = {};
                return sigtimedwait(&signals, nullptr, &at_once) < 0 && errno == EAGAIN ? 0 : 1;
              }),
              0);
  }
}

TEST(StopSignals, AClosingTerminalDoesNotHurryNorDoesABatchSystem) {
  EXPECT_TRUE(AsksToHurry(SIGTERM));
  EXPECT_TRUE(AsksToHurry(SIGINT));
  EXPECT_FALSE(AsksToHurry(SIGHUP));
  for (const int number : kSignalsWithoutMeaning) EXPECT_FALSE(AsksToHurry(number));
  EXPECT_FALSE(AsksToHurry(-1)) << "none came";
}

TEST(StopSignals, AFileThatMayNotGrowIsAnErrorOfTheWrite) {
  TempFolder folder;
  const auto write_beyond = [path = folder / "file"] {
    const rlimit limit = {4096, 4096};
    const int file = open(path.c_str(), O_CREAT | O_RDWR, 0600);
    if (file < 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    return pwrite(file, "x", 1, 8192) < 0 && errno == EFBIG ? 0 : 2;
  };
  EXPECT_EQ(InAChild([&] {
              const rlimit no_core = {0, 0};
              setrlimit(RLIMIT_CORE, &no_core);
              signal(SIGXFSZ, SIG_DFL);
              return write_beyond();
            }),
            -SIGXFSZ);
  EXPECT_EQ(InAChild([&] {
              IgnoreSignalsOfWrites();
              return write_beyond();
            }),
            0);
}

}  // namespace
}  // namespace motley
