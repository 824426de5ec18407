#include "coordinator/state/context_watch.h"

#include "tests/coordinator/state/decide_fixture.h"

namespace motley::coordinator {
namespace {

TEST(ContextWatch, PlansAgainOnceForANumberAndTwiceForADevice) {
  ContextWatch watch;
  const DeviceId one("n1/gpu0"), other("n2/gpu0");
  EXPECT_TRUE(watch.PlansAgain(one, 100));
  EXPECT_FALSE(watch.PlansAgain(one, 100)) << "the plan did not take it in";
  EXPECT_FALSE(watch.PlansAgain(one, 90));
  EXPECT_TRUE(watch.PlansAgain(one, 110)) << "another plan has other communicators";
  EXPECT_FALSE(watch.PlansAgain(one, 120));
  EXPECT_TRUE(watch.PlansAgain(other, 100));
}

class ContextDecision : public DecideTest {
 protected:
  ContextDecision() {
    Enter(Stage::kStarting);
    run().context.End("n1/gpu0 (L4) holds 1.2 GiB beside tensors, the plan counted 0.9 GiB");
  }
  void ExpectPlannedAgain() {
    const Decision decision = Now();
    ASSERT_TRUE(std::holds_alternative<EndEpoch>(decision.action));
    const EndEpoch& end = std::get<EndEpoch>(decision.action);
    EXPECT_EQ(end.ending, Ending::kReplan);
    EXPECT_FALSE(end.save);
    EXPECT_EQ(decision.reason, "n1/gpu0 (L4) holds 1.2 GiB beside tensors, the plan counted 0.9 GiB");
  }
};

TEST_F(ContextDecision, EndsTheEpochWhenAllRanksHaveSaidTheirs) {
  run().ranks[0].ready = true;
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  run().ranks[1].ready = true;
  ExpectPlannedAgain();
  run().context.BeginGeneration();
  EXPECT_TRUE(std::holds_alternative<MarkRunning>(Now().action));
}

TEST_F(ContextDecision, EndsItAlsoInItsFirstSteps) {
  Enter(Stage::kRunning);
  for (RankRun& rank : run().ranks) rank.ready = true;
  ExpectPlannedAgain();
}

// Of itself it would end the job: the same plan would run out of memory again.
TEST_F(ContextDecision, ARankThatFailsMeanwhileDoesNotEndTheJob) {
  run().ranks[0].ready = true;
  Fail(FailureKind::kFailed, "n1/gpu0", "out of memory");
  ExpectPlannedAgain();
  run().context.BeginGeneration();
  EXPECT_EQ(std::get<EndEpoch>(Now().action).ending, Ending::kFail);
}

}  // namespace
}  // namespace motley::coordinator
