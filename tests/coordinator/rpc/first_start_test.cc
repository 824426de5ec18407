// A job's first start on nodes that do not reach each other, and on a network that fails while they are measured.
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class FirstStart : public ClusterTest {
 protected:
  FirstStart() {
    config_.driver.probe.reach_pause = absl::Milliseconds(200);
    config_.driver.probe.reach_timeout = absl::Milliseconds(800);
    Start();
  }
  // The devices of the epoch that begins above `after`, and the epoch.
  std::pair<int, int64_t> Started(FakeWorker& worker, int64_t after = 0) {
    const auto ranks = worker.WaitForStart(after);
    EXPECT_FALSE(ranks.empty());
    return ranks.empty() ? std::pair(0, int64_t{0}) : std::pair(ranks[0].device_ids_size(), ranks[0].epoch());
  }
};

TEST_F(FirstStart, WhoeverIsNotReachedIsLeftOutAndTakesPartOnceMended) {
  FakeWorker::Options blind;
  blind.unreachable = "n2";
  blind.mended = std::make_shared<std::atomic<bool>>(false);
  blind.on_save = Save;
  auto n1 = Join("n1", blind), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(100)).ok());
  const auto [devices, epoch] = Started(*n1);
  EXPECT_EQ(devices, 1) << "the healthy node trains alone";
  const std::string way = "n1 does not reach n2 at 127.0.0.1:9 (connection timed out)";
  EXPECT_NE(WaitForEvent("a", "device_left_out").find("goes on without node n2: " + way), std::string::npos);
  EXPECT_EQ(NodeOf("n2").state(), "refused");
  EXPECT_NE(NodeOf("n2").reason().find(way), std::string::npos) << NodeOf("n2").reason();
  EXPECT_NE(GetJob("a").reason().find("without node n2: " + way), std::string::npos) << GetJob("a").reason();
  EXPECT_EQ(NodeOf("n1").state(), "ready");
  n1->SendAll(v1::RankEvent::KIND_READY);
  n1->StepTo(2);
  *blind.mended = true;
  EXPECT_EQ(Started(*n1, epoch).first, 2) << "it goes on with both by itself";
}

TEST_F(FirstStart, MendedBeforeTheFirstStepItIsSetUpAgain) {
  FakeWorker::Options blind;
  blind.unreachable = "n2";
  blind.mended = std::make_shared<std::atomic<bool>>(false);
  blind.answer_profiles = false;  // it is still measured
  auto n1 = Join("n1", blind), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(100)).ok());
  EXPECT_NE(WaitForEvent("a", "device_left_out"), "");
  *blind.mended = true;
  EXPECT_NE(WaitForEvent("a", "probe_passed").find("node n2 is reached now"), std::string::npos);
}

TEST_F(FirstStart, OneThatDoesNotSayWhomItReachesAccusesNobody) {
  FakeWorker::Options silent;
  silent.answer_reach = false;
  auto n1 = Join("n1", silent), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(3)).ok());
  EXPECT_EQ(Started(*n1).first, 2);
}

TEST_F(FirstStart, ANetworkThatFailsWhileAJobIsMeasuredIsWaitedFor) {
  FakeWorker::Options cut;
  cut.profile_error = "n1/gpu0: exchange of scalars: lost n2/gpu0: Connection timed out";
  cut.profile_fault = v1::FAULT_PEER;
  cut.failing_profiles = std::make_shared<std::atomic<int>>(2);
  auto n1 = Join("n1", cut), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(3)).ok());
  const v1::Job waiting = WaitForState("a", v1::JOB_STATE_WAITING);
  EXPECT_NE(waiting.reason().find("Connection timed out; tried again after"), std::string::npos) << waiting.reason();
  EXPECT_EQ(Started(*n1).first, 2);
}

}  // namespace
}  // namespace motley::coordinator
