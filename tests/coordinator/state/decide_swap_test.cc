// What is decided while newcomers are taken in: their ranks meet and measure, and those of the job are swapped for new ones.
#include "tests/coordinator/state/decide_fixture.h"

namespace motley::coordinator {
namespace {

// n1 has trained; n2 and n3 joined.
class SwapTest : public DecideTest {
 protected:
  SwapTest() {
    AddNode("n3");
    run().has_run = true;
    run().proven[NodeName("n1")] = 1;
    for (const char* name : {"n1", "n2", "n3"}) run().storage_ok[NodeName(name)] = 1;
  }
  void Swap(Stage stage) {
    Enter(stage);
    run().profiling = {NodeName("n1"), NodeName("n2"), NodeName("n3")};
  }
  void Meet(const std::vector<int>& ranks) {
    for (const int rank : ranks) run().ranks[rank].met = now_;
  }
  std::set<NodeName> Blamed() {
    const Decision decision = Now();
    const auto* end = std::get_if<EndEpoch>(&decision.action);
    return end == nullptr ? std::set<NodeName>() : end->blamed;
  }
};

TEST_F(SwapTest, ASilentNewcomerIsLeftOutAfterTheMeeting) {
  for (const Stage stage : {Stage::kProfiling, Stage::kStarting}) {
    Swap(stage);
    Meet({0, 2});
    now_ += config_.meet_timeout;
    EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
    now_ += absl::Milliseconds(100);
    EXPECT_EQ(Blamed(), std::set<NodeName>{NodeName("n2")}) << "n3 came";
    EXPECT_EQ(Now().reason, "the rank on n2/gpu0 made no progress: it did not come to the meeting of the ranks within 10 s");
    EXPECT_EQ(std::get<EndEpoch>(Now().action).ending, Ending::kReplan);
  }
}

TEST_F(SwapTest, WhereNobodyComesItIsRatherTheHost) {
  Swap(Stage::kStarting);
  now_ += config_.meet_timeout + absl::Seconds(1);
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  now_ += config_.swap_timeout - config_.meet_timeout;
  EXPECT_EQ(Blamed(), (std::set<NodeName>{NodeName("n2"), NodeName("n3")}));
}

TEST_F(SwapTest, CollectivesThatTakeLongArePredicted) {
  Swap(Stage::kProfiling);
  now_ += absl::Seconds(2);
  Meet({0, 1});
  now_ += absl::Seconds(1);
  Meet({2});
  now_ += config_.collectives_timeout;
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  now_ += absl::Milliseconds(100);
  const Decision decision = Now();
  EXPECT_TRUE(std::holds_alternative<PredictCollectives>(decision.action));
  EXPECT_EQ(decision.reason,
            "the collectives of these 3 devices were not measured within 8 s, which a job that stands still waits for them: the "
            "plan is made with predicted ones");
}

TEST_F(SwapTest, RanksThatTrainedBeforeAndDoNotComeMeasureNothing) {
  Swap(Stage::kProfiling);
  Meet({1, 2});
  now_ += config_.meet_timeout + config_.collectives_timeout;
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  now_ += absl::Milliseconds(100);
  EXPECT_TRUE(std::holds_alternative<PredictCollectives>(Now().action));
}

TEST_F(SwapTest, WithoutNewcomersMeasuringTakesItsTime) {
  for (const char* name : {"n2", "n3"}) run().proven[NodeName(name)] = 1;
  Swap(Stage::kProfiling);
  now_ += config_.profile_timeout;
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
}

TEST_F(SwapTest, TheNextRanksWaitUntilThoseThatMeasuredAreGone) {
  Swap(Stage::kPlanning);
  run().prepared.emplace();
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  for (const char* device : {"n1/gpu0", "n2/gpu0"}) End(device);
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  now_ += config_.collectives_timeout + absl::Seconds(1);
  EXPECT_TRUE(std::holds_alternative<StartRanks>(Now().action)) << "n3 is new, and does not say so";
}

TEST_F(SwapTest, OneThatIsToldToEndInTheSwapIsCounted) {
  Swap(Stage::kStarting);
  node("n2").leaves_at = now_ + absl::Seconds(90);
  EXPECT_EQ(Blamed(), std::set<NodeName>{NodeName("n2")});
  node("n2").leaves_at.reset();
  node("n1").leaves_at = now_ + absl::Seconds(90);
  EXPECT_TRUE(std::holds_alternative<EndEpoch>(Now().action));
  EXPECT_TRUE(Blamed().empty()) << "it was there before";
}

TEST_F(SwapTest, AStartOfASwapIsWaitedForLessLong) {
  Swap(Stage::kStarting);
  Meet({0, 1, 2});
  now_ += config_.swap_timeout + absl::Seconds(1);
  EXPECT_EQ(Blamed(), (std::set<NodeName>{NodeName("n2"), NodeName("n3")}));
}

}  // namespace
}  // namespace motley::coordinator
