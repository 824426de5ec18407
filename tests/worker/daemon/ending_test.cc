#include "worker/daemon/ending.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "common/base/stop_signals.h"

namespace motley::worker {
namespace {

// For this thread, whose mask comes back with the test's end.
class EndingTest : public ::testing::Test {
 protected:
  EndingTest() : before_(Mask()), signals_(BlockStopSignals()), ending_(signals_) {}
  ~EndingTest() override { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  static sigset_t Mask() {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    return mask;
  }

  const sigset_t before_, signals_;
  Ending ending_;
};

TEST_F(EndingTest, ASignalIsNoRefusal) {
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGALRM}) {
    pthread_kill(pthread_self(), number);
    EXPECT_FALSE(ending_.Wait([] { return true; }).has_value()) << number;
  }
}

TEST_F(EndingTest, ARefusalEndsTheWaitWithItsReason) {
  std::thread other([this] { ending_.Refuse(absl::AlreadyExistsError("another living worker has the name")); });
  const std::optional<absl::Status> why = ending_.Wait([] { return true; });
  other.join();
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(*why, absl::AlreadyExistsError("another living worker has the name"));
}

TEST_F(EndingTest, ARefusalCountsWhereBothAreThere) {
  ending_.Refuse(absl::AbortedError("gone"));
  pthread_kill(pthread_self(), SIGTERM);
  EXPECT_TRUE(ending_.Wait([] { return true; }).has_value());
  const timespec at_once = {};
  EXPECT_EQ(sigtimedwait(&signals_, nullptr, &at_once), SIGTERM) << "nobody has taken it";
}

}  // namespace
}  // namespace motley::worker
