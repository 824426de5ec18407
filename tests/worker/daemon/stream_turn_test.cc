#include "worker/daemon/stream_turn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kNow = absl::Seconds(100);

StreamState Welcomed() {
  StreamState state;
  state.last_heard = kNow;
  state.patience = absl::Seconds(9);
  state.welcomed = true;
  state.next_heartbeat = kNow + absl::Seconds(3);
  return state;
}

TEST(StreamTurn, WaitsForTheNextHeartbeat) {
  const StreamTurn turn = Decide(kNow, Welcomed());
  EXPECT_EQ(turn.action, StreamAction::kWait);
  EXPECT_NEAR(absl::ToDoubleSeconds(turn.wait), 3, 0.01);
  EXPECT_EQ(Decide(kNow + absl::Seconds(3), Welcomed()).action, StreamAction::kSendHeartbeat);
}

TEST(StreamTurn, SilenceOfALeaseIsGivenUpEvenWhileAWriteHangs) {
  StreamState state = Welcomed();
  for (const bool writing : {false, true}) {
    state.writing = writing;
    EXPECT_NE(Decide(kNow + absl::Seconds(9), state).action, StreamAction::kGiveUp);
    const StreamTurn turn = Decide(kNow + absl::Milliseconds(9001), state);
    EXPECT_EQ(turn.action, StreamAction::kGiveUp);
    EXPECT_THAT(turn.reason, HasSubstr("said nothing for 9.0 s: is it stopped"));
  }
}

TEST(StreamTurn, NothingIsSentBeforeTheWelcomeOrWhileAWriteIsOnItsWay) {
  StreamState state = Welcomed();
  state.has_reports = true;
  EXPECT_EQ(Decide(kNow, state).action, StreamAction::kSendReport);
  state.writing = true;
  EXPECT_EQ(Decide(kNow + absl::Seconds(4), state).action, StreamAction::kWait);
  state.writing = state.welcomed = false;
  EXPECT_EQ(Decide(kNow + absl::Seconds(4), state).action, StreamAction::kWait);
}

TEST(StreamTurn, TheEndSendsWhatWaitsThenSaysGoodbyeThenGivesUp) {
  StreamState state = Welcomed();
  state.stop_at = kNow + absl::Seconds(1);
  state.has_reports = true;
  EXPECT_EQ(Decide(kNow, state).action, StreamAction::kSendReport);
  state.has_reports = false;
  EXPECT_EQ(Decide(kNow, state).action, StreamAction::kSayGoodbye);
  state.said_goodbye = true;
  EXPECT_EQ(Decide(kNow, state).action, StreamAction::kWait);
  EXPECT_EQ(Decide(kNow + absl::Seconds(1), state).action, StreamAction::kGiveUp);
}

}  // namespace
}  // namespace motley::worker
