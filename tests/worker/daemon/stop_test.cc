#include "worker/daemon/stop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kAsked = absl::Seconds(500);

TEST(Stop, WaitsForRanksThatMaySave) {
  const StopState state{kAsked, absl::Seconds(90), /*training=*/true, /*connected=*/true};
  EXPECT_TRUE(Decide(kAsked, state).wait);
  EXPECT_TRUE(Decide(kAsked + absl::Seconds(89), state).wait);
  EXPECT_FALSE(Decide(kAsked + absl::Seconds(90), state).wait);
  EXPECT_THAT(Decide(kAsked + absl::Seconds(90), state).reason, HasSubstr("worker.stop_seconds = 90"));
}

TEST(Stop, DoesNotWaitForNothing) {
  StopState state{kAsked, absl::Seconds(90), /*training=*/false, /*connected=*/true};
  EXPECT_FALSE(Decide(kAsked, state).wait);
  state.training = true;
  state.connected = false;
  EXPECT_THAT(Decide(kAsked, state).reason, HasSubstr("no session"));
  EXPECT_FALSE(Decide(kAsked, state).wait);
  state.connected = true;
  state.asked_again = true;
  EXPECT_FALSE(Decide(kAsked, state).wait);
  state.asked_again = false;
  state.limit = absl::ZeroDuration();
  EXPECT_FALSE(Decide(kAsked, state).wait);
}

// What only this disk has.
TEST(Stop, WaitsForFilesThatOthersBring) {
  StopState state{kAsked, absl::Seconds(90), /*training=*/false, /*connected=*/true, /*asked_again=*/false, /*files=*/true};
  EXPECT_TRUE(Decide(kAsked, state).wait);
  EXPECT_THAT(Decide(kAsked, state).reason, HasSubstr("what only this node's disk has"));
  EXPECT_FALSE(Decide(kAsked + absl::Seconds(90), state).wait);
  EXPECT_THAT(Decide(kAsked + absl::Seconds(90), state).reason, HasSubstr("other nodes have not brought it within"));
  state.connected = false;
  EXPECT_FALSE(Decide(kAsked, state).wait);
  EXPECT_THAT(Decide(kAsked, state).reason, HasSubstr("no session with the coordinator; what only this node's disk has"));
  state.connected = true;
  state.asked_again = true;
  EXPECT_FALSE(Decide(kAsked, state).wait);
}

}  // namespace
}  // namespace motley::worker
