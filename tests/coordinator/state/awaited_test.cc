// A job that another set of devices has no plan for waits for the devices that it knows.
#include "coordinator/state/awaited.h"

#include "tests/coordinator/state/decide_fixture.h"

namespace motley::coordinator {
namespace {

class AwaitedTest : public DecideTest {
 protected:
  AwaitedTest() {
    run().has_run = true;
    run().took_part = {DeviceId("n1/gpu0"), DeviceId("n2/gpu0")};
  }
  // The planner said no.
  Decision Refused(const absl::Status& status, bool of_planner = true) {
    Enter(Stage::kPlanning);
    run().prepared.emplace();
    run().prepared->status = status;
    run().prepared->of_planner = of_planner;
    return Now();
  }
};

TEST_F(AwaitedTest, ANamedDeviceThatMayComeBackIsWaitedFor) {
  job().config.planner.pins = "stage0=n1, stage1=n2";
  run().named = {"n1", "n2"};
  EXPECT_TRUE(std::holds_alternative<BeginSetup>(Now().action)) << Now().reason;
  const auto waits = [&](const std::string& why) {
    const Decision decision = Now();
    EXPECT_TRUE(std::holds_alternative<Wait>(decision.action)) << why;
    EXPECT_NE(decision.reason.find("planner.pins names what cannot be used now: n2 (" + why), std::string::npos)
        << decision.reason;
    EXPECT_NE(decision.reason.find("planner.pins_required = false"), std::string::npos) << decision.reason;
  };
  const ClusterState well = state_;
  node("n2").connected = false;
  node("n2").reason = "its connection broke";
  waits("lost: its connection broke)");
  state_ = well;
  node("n2").drained = true;
  waits("drained)");
  state_ = well;
  node("n2").held = true;
  node("n2").reason = "was lost 1 time";
  waits("held: was lost 1 time)");
  state_ = well;
  node("n2").leaves_at = now_ + absl::Seconds(1);
  waits("its worker was told to end)");
  state_ = well;
  run().left_out[DeviceId("n2/gpu0")] = "it reads badly";
  waits("left out: it reads badly)");
  state_ = well;
  node("n2").description.devices[0].card.lost = "it fell off the bus";
  waits("it fell off the bus)");
  state_ = well;
  state_.nodes.erase(NodeName("n2"));
  waits("not seen since the coordinator was started)");
  job().config.planner.plan_json = "{}";
  EXPECT_EQ(Now().reason.find("the plan by hand names what cannot be used now: n2 ("), 0u) << Now().reason;
  state_ = well;
  EXPECT_TRUE(std::holds_alternative<BeginSetup>(Now().action)) << "it is back";
}

// It was known when the job was submitted; the coordinator that was restarted meanwhile has seen neither it nor its profile.
TEST_F(AwaitedTest, ANameThatNobodyKnowsIsWaitedFor) {
  job().config.planner.pins = "stage0=n1, stage1=n9";
  run().named = {"n1", "n9"};
  run().has_run = false;
  run().took_part.clear();
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<Wait>(decision.action)) << decision.reason;
  EXPECT_TRUE(std::get<Wait>(decision.action).lends);
  EXPECT_NE(decision.reason.find("names what cannot be used now: n9 (not seen since the coordinator was started); goes on"),
            std::string::npos)
      << decision.reason;
  run().named = {"n1/gpu1"};
  EXPECT_NE(Now().reason.find("n1/gpu1 (its worker does not offer it)"), std::string::npos) << Now().reason;
  run().named = {"n1", "n9"};
  AddNode("n9");
  now_ += absl::Minutes(1);
  EXPECT_TRUE(std::holds_alternative<BeginSetup>(Now().action)) << Now().reason;
}

// No node that comes makes it one that may be used.
TEST_F(AwaitedTest, ANameThatIsExcludedIsForThePlannerToRefuse) {
  for (const char* excluded : {"n2", "n2/gpu0", "n1, n2/gpu0"}) {
    for (const char* named : {"n2", "n2/gpu0"}) {
      run().named = {named};
      job().config.planner.exclude = excluded;
      if (job().config.planner.exclude.starts_with("n1")) AddNode("n3"), now_ += absl::Minutes(1);
      EXPECT_TRUE(std::holds_alternative<BeginSetup>(Now().action)) << excluded << " " << named << ": " << Now().reason;
    }
  }
  run().named = {"n9"};
  job().config.planner.exclude = "n9";
  EXPECT_TRUE(std::holds_alternative<BeginSetup>(Now().action)) << Now().reason;
  EXPECT_EQ(std::get<Finish>(Refused(absl::NotFoundError("no such device 'n9'")).action).phase, JobPhase::kFailed);
}

TEST_F(AwaitedTest, APlanThatDoesNotFitWhatIsLeftIsWaitedForWhileAPartnerIsAway) {
  const absl::Status status = absl::InvalidArgumentError("pin 'stage1=n2': there are at most as many stages as devices, 1");
  EXPECT_EQ(std::get<Finish>(Refused(status).action).phase, JobPhase::kFailed) << "everybody is there";
  node("n2").connected = false;
  const Decision decision = Refused(status);
  ASSERT_TRUE(std::holds_alternative<Wait>(decision.action)) << decision.reason;
  EXPECT_NE(decision.reason.find("there are at most as many stages as devices, 1"), std::string::npos) << decision.reason;
  EXPECT_NE(decision.reason.find("n2/gpu0 (lost"), std::string::npos) << decision.reason;
  EXPECT_TRUE(std::holds_alternative<Finish>(Refused(status, false).action)) << "no device mends what the planner did not say";
  run().has_run = false;
  EXPECT_TRUE(std::holds_alternative<Finish>(Refused(status).action));
}

// Three are needed; n2 and n3 come back one after the other.
TEST_F(AwaitedTest, WhoComesBackBeforeTheOthersIsNotRefusedForIt) {
  const absl::Status status = absl::ResourceExhaustedError("12 MiB are missing");
  run().storage_ok = {{NodeName("n1"), 1}, {NodeName("n2"), 1}};
  run().proven[NodeName("n1")] = 1;
  EXPECT_TRUE(std::holds_alternative<RefuseNewcomers>(Refused(status).action)) << "n1 may have a plan without it";
  run().proven_without_plan = {DeviceId("n1/gpu0")};
  EXPECT_TRUE(std::holds_alternative<Wait>(Refused(status).action)) << Now().reason;
}

}  // namespace
}  // namespace motley::coordinator
