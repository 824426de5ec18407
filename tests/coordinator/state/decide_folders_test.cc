// Decisions about a checkpoint folder that does not answer, or cannot be read.
#include <gmock/gmock.h>

#include "tests/coordinator/state/decide_fixture.h"

namespace motley::coordinator {
namespace {

TEST_F(DecideTest, ACheckpointFolderThatCannotBeLookedAtIsWaitedFor) {
  Enter(Stage::kPlanning);
  run().prepared.emplace();
  for (const absl::Status& status :
       {WithFault(absl::InternalError("/c/j: Input/output error"), Fault::kStorage),
        WithFault(absl::ResourceExhaustedError("/c/j: no space left"), Fault::kStorage),
        absl::PermissionDeniedError("/c/j: permission denied"), absl::UnavailableError("/c/j: timed out")}) {
    run().prepared->status = status;
    ASSERT_TRUE(std::holds_alternative<RetryLater>(Now().action)) << status;
    EXPECT_TRUE(std::get<RetryLater>(Now().action).folder);
    EXPECT_NE(Now().reason.find("/c/j"), std::string::npos) << Now().reason;
  }
  run().prepared->status = absl::DataLossError("none verifies");
  EXPECT_TRUE(std::holds_alternative<Finish>(Now().action));
}

TEST_F(DecideTest, AJobThatWaitsForItsFolderLendsUntilItIsBack) {
  run().folder.why = "/c/j does not answer";
  run().trouble = {Remedy::kWaitForStorage, 6, 0, "/c/j does not answer", false};
  run().stage_since = now_;
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<Wait>(decision.action)) << decision.reason;
  EXPECT_TRUE(std::get<Wait>(decision.action).lends);
  EXPECT_EQ(decision.reason, "/c/j does not answer");
  node("n1").drained = node("n2").drained = true;
  EXPECT_NE(Now().reason.find("no device can be used"), std::string::npos) << Now().reason;
  node("n1").drained = node("n2").drained = false;
  run().folder.why.clear();
  run().trouble.waited = true;
  EXPECT_TRUE(std::holds_alternative<BeginSetup>(Now().action)) << Now().reason;
}

TEST_F(DecideTest, WhileItsFolderDoesNotAnswerAJobLends) {
  Enter(Stage::kPlanning);
  run().looking = true;
  const auto lends = [&] { return std::get<KeepOn>(Now().action).lends; };
  now_ += config_.look_patience;
  EXPECT_FALSE(lends());
  now_ += absl::Seconds(1);
  EXPECT_TRUE(lends());
  run().folder.took = absl::Seconds(40);
  EXPECT_FALSE(lends()) << "it is slow, and came back the last time";
  now_ += absl::Seconds(70);
  EXPECT_TRUE(lends());
}

TEST_F(DecideTest, TheFolderThatDoesNotAnswerIsTheOneThatIsNamed) {
  job().config.checkpoint.folder = "/good";
  job().config.checkpoint.initial = "/share/start";
  Enter(Stage::kPlanning);
  run().looking = true;
  now_ += config_.look_patience + absl::Seconds(1);
  EXPECT_EQ(Now().reason.find("checkpoint.folder '/good' does not answer on the coordinator's machine"), 0u) << Now().reason;
  run().looks_at_initial = true;
  EXPECT_EQ(Now().reason.find("checkpoint.initial '/share/start' does not answer on the coordinator's machine"), 0u)
      << Now().reason;
  EXPECT_EQ(Now().reason.find("/good"), std::string::npos) << Now().reason;
}

TEST_F(DecideTest, AFolderThatDoesNotAnswerIsNamedAndTriedAgain) {
  job().config.checkpoint.folder = "/share/j";
  Enter(Stage::kPlanning);
  run().looking = true;
  now_ += config_.look_patience;
  EXPECT_EQ(Now().reason, kPlanningReason);
  now_ += absl::Seconds(1);
  EXPECT_NE(Now().reason.find("'/share/j' does not answer on the coordinator's machine"), std::string::npos) << Now().reason;
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  run().proven[NodeName("n1")] = 1;  // beside a newcomer, whose fault it is not
  now_ += config_.planning_timeout;
  ASSERT_TRUE(std::holds_alternative<RetryLater>(Now().action)) << "a new job waits for it, too";
  EXPECT_TRUE(std::get<RetryLater>(Now().action).folder);
  job().stop_requested = true;
  EXPECT_TRUE(std::holds_alternative<Finish>(Now().action));
}

}  // namespace
}  // namespace motley::coordinator
