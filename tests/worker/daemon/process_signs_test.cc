#include "worker/daemon/process_signs.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

namespace motley::worker {
namespace {

TEST(ProcessSigns, AProcessThatWorksMovesAndAStoppedOneDoesNot) {
  const pid_t child = fork();
  if (child == 0) {
    for (std::atomic<int> turns = 0;; ++turns) {
    }
  }
  ASSERT_GT(child, 0);
  const ProcessSigns first = SignsOf(child);
  EXPECT_FALSE(first.stopped());
  EXPECT_FALSE(Moved(first, first));
  ProcessSigns next = first;
  while (!Moved(first, next)) next = SignsOf(child);
  kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  const ProcessSigns stopped = SignsOf(child);
  EXPECT_TRUE(stopped.stopped()) << stopped.state;
  EXPECT_FALSE(Moved(stopped, SignsOf(child)));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(SignsOf(child).state, '?') << "nobody";
}

}  // namespace
}  // namespace motley::worker
