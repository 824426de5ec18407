// What is decided when a node, or the coordinator, was told to end.
#include "tests/coordinator/state/decide_fixture.h"

namespace motley::coordinator {
namespace {

// Ten steps done, four of them since the newest checkpoint; a step takes 1 s, a save 2 s and twice that is reckoned with.
class DecideLeaving : public DecideTest {
 protected:
  DecideLeaving() {
    Enter(Stage::kRunning);
    job().config.checkpoint.folder = "/c";
    job().step = 10;
    run().epoch_steps = 4;
    run().saved_step = 6;
    run().save_seconds = 2;
    run().typical_step_seconds = 1;
    run().last_step_at = now_;
  }
  EndEpoch Ended() {
    const Decision decision = Now();
    EXPECT_TRUE(std::holds_alternative<EndEpoch>(decision.action)) << decision.reason;
    return std::holds_alternative<EndEpoch>(decision.action) ? std::get<EndEpoch>(decision.action) : EndEpoch{};
  }
};

TEST_F(DecideLeaving, SavesWhatFitsTheTime) {
  node("n2").leaves_at = now_ + absl::Seconds(7);
  EXPECT_TRUE(Ended().save) << "the rest of this step, the next and the save take 6 s";
  EXPECT_EQ(Ended().cause_label, "node_leaving");
  EXPECT_NE(Now().reason.find("node n2 was told to end within 7 s: a checkpoint is saved first"), std::string::npos)
      << Now().reason;
  node("n2").leaves_at = now_ + absl::Seconds(5);
  EXPECT_FALSE(Ended().save);
  EXPECT_NE(Now().reason.find("saving takes about 6.0 s: 4 steps will be repeated"), std::string::npos) << Now().reason;
  state_.stops_at = now_ + absl::Seconds(2);
  EXPECT_EQ(Ended().cause_label, "coordinator_stopped") << "who goes first";
}

TEST_F(DecideLeaving, NothingIsSavedTwiceOrWithoutAFolder) {
  state_.stops_at = now_ + absl::Seconds(60);
  EXPECT_TRUE(Ended().save);
  job().config.checkpoint.folder = "";
  EXPECT_FALSE(Ended().save);
  EXPECT_NE(Now().reason.find("keeps no checkpoints: 4 steps will be repeated"), std::string::npos) << Now().reason;
  job().config.checkpoint.folder = "/c";
  run().saved_step = 10;
  EXPECT_FALSE(Ended().save);
  EXPECT_NE(Now().reason.find("every step is saved"), std::string::npos) << Now().reason;
}

TEST_F(DecideLeaving, AStartEndsForANodeThatLeavesButNotForTheCoordinator) {
  run().stage = Stage::kStarting;
  run().epoch_steps = 0;
  state_.stops_at = now_ + absl::Seconds(60);
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action)) << Now().reason;
  state_.stops_at.reset();
  node("n2").leaves_at = now_ + absl::Seconds(60);
  EXPECT_FALSE(Ended().save);
}

TEST_F(DecideLeaving, NothingNewIsBegun) {
  run().stage = Stage::kIdle;
  run().ranks.clear();
  state_.membership_changed = now_ - absl::Minutes(1);
  node("n2").leaves_at = now_ + absl::Seconds(60);
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<BeginSetup>(decision.action)) << decision.reason;
  EXPECT_EQ(std::get<BeginSetup>(decision.action).devices.size(), 1u);
  state_.stops_at = now_ + absl::Seconds(60);
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action)) << Now().reason;
}

}  // namespace
}  // namespace motley::coordinator
