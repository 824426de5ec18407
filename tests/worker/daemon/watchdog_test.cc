#include "worker/daemon/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kStart = absl::Seconds(100);

WatchState Training() {
  WatchState state;
  state.started = state.last_word = state.last_advance = state.last_sign = kStart;
  state.has_spoken = state.has_advanced = true;
  state.predicted_step = absl::Seconds(2);
  state.first_progress = absl::Seconds(60);
  state.doing = "step 7, gather";
  return state;
}

TEST(Watchdog, SilenceOfMoreThanThreeSecondsIsAStoppedProcess) {
  EXPECT_FALSE(Decide(kStart + absl::Seconds(3), Training(), {}).hung);
  const WatchDecision decision = Decide(kStart + absl::Milliseconds(3100), Training(), {});
  EXPECT_TRUE(decision.hung);
  EXPECT_THAT(decision.reason, HasSubstr("step 7, gather"));
}

TEST(Watchdog, LongStepsDoNotDelayIt) {
  WatchState state = Training();
  state.predicted_step = absl::Seconds(600);
  EXPECT_TRUE(Decide(kStart + absl::Seconds(4), state, {}).hung);
}

TEST(Watchdog, ALivingRankMayWaitForSeveralSteps) {
  WatchState state = Training();
  state.predicted_step = absl::Seconds(10);
  state.last_word = kStart + absl::Seconds(99);
  EXPECT_FALSE(Decide(kStart + absl::Seconds(100), state, {}).hung);
  state.last_word = kStart + absl::Seconds(100);
  const WatchDecision decision = Decide(kStart + absl::Milliseconds(100100), state, {});
  EXPECT_TRUE(decision.hung);
  EXPECT_THAT(decision.reason, HasSubstr("predicted step 10.000 s"));
}

TEST(Watchdog, PatienceBeforeTheFirstWordAndTheFirstStep) {
  WatchState state = Training();
  state.has_spoken = state.has_advanced = false;
  EXPECT_FALSE(Decide(kStart + absl::Seconds(59), state, {}).hung);
  EXPECT_TRUE(Decide(kStart + absl::Seconds(61), state, {}).hung);
  state.has_spoken = true;
  state.last_word = kStart + absl::Seconds(45);
  EXPECT_FALSE(Decide(kStart + absl::Seconds(46), state, {}).hung);
  EXPECT_TRUE(Decide(kStart + absl::Seconds(49), state, {}).hung);
}

TEST(Watchdog, BeforeTheFirstWordAStoppedProcessIsNoticedAndOneThatWorksIsWaitedFor) {
  WatchState state = Training();
  state.has_spoken = state.has_advanced = false;
  state.stopped = true;
  EXPECT_FALSE(Decide(kStart + absl::Seconds(10), state, {}).hung);
  const WatchDecision stopped = Decide(kStart + absl::Seconds(11), state, {});
  EXPECT_TRUE(stopped.hung);
  EXPECT_THAT(stopped.reason, HasSubstr("its process is stopped"));
  state.stopped = false;
  EXPECT_FALSE(Decide(kStart + absl::Seconds(11), state, {}).hung);
  state.last_sign = kStart + absl::Seconds(200);  // it reads its libraries from a cold share
  EXPECT_FALSE(Decide(kStart + absl::Seconds(259), state, {}).hung);
  EXPECT_TRUE(Decide(kStart + absl::Seconds(261), state, {}).hung);
  state.last_sign = kStart + absl::Seconds(601);
  const WatchDecision busy = Decide(kStart + absl::Seconds(601), state, {});
  EXPECT_TRUE(busy.hung) << "it turns in a circle";
  EXPECT_THAT(busy.reason, HasSubstr("has not said a word"));
}

}  // namespace
}  // namespace motley::worker
