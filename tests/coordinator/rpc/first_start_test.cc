// A job's first start on nodes that do not reach each other, and on a network that fails while they are measured.
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class FirstStart : public ClusterTest {
 protected:
  FirstStart() {
    config_.driver.flapping.first_hold = absl::Milliseconds(100);
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

TEST_F(FirstStart, TheFewWithOtherDataAreLeftOutUntilTheirWorkerComesAnewWithTheRightOne) {
  FakeWorker::Options other, saving;
  other.data_digest = "other";
  saving.on_save = Save;
  auto n1 = Join("n1", other), n2 = Join("n2", saving), n3 = Join("n3", saving);
  ASSERT_TRUE(Submit("a", MakeConfig(100)).ok());
  const auto [devices, epoch] = Started(*n2);
  EXPECT_EQ(devices, 2);
  const std::string why =
      "goes on without node n1: data.path '/data' holds other data (100000 bytes, digest other) than on node n2";
  EXPECT_NE(WaitForEvent("a", "device_left_out").find(why), std::string::npos);
  EXPECT_EQ(NodeOf("n1").state(), "refused");
  EXPECT_NE(NodeOf("n1").reason().find(why), std::string::npos) << NodeOf("n1").reason();
  n2->SendAll(v1::RankEvent::KIND_READY), n3->SendAll(v1::RankEvent::KIND_READY);
  n2->StepTo(2), n3->StepTo(2);
  n1->Drop();
  n1.reset();
  while (NodeOf("n1").state() != "lost") std::this_thread::yield();
  FakeWorker::Options mended = saving;
  mended.incarnation = 2;
  n1 = Join("n1", mended);
  EXPECT_EQ(Started(*n2, epoch).first, 3);
}

TEST_F(FirstStart, ADeviceThatIsTooSmallForTheStrategyIsLeftOut) {
  FakeWorker::Options small;
  small.on_hello = [](v1::Hello& hello) { hello.mutable_devices(0)->set_memory_bytes(int64_t{1} << 20); };
  auto n1 = Join("n1"), n2 = Join("n2", small), n3 = Join("n3");
  JobConfig config = MakeConfig(3);
  config.planner.strategy = "even";
  config.model.config_json =
      R"({"model_type": "gpt2", "vocab_size": 256, "n_embd": 128, "n_layer": 4, "n_head": 2, "n_positions": 32,
          "activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0})";
  ASSERT_TRUE(Submit("a", config).ok());
  EXPECT_EQ(Started(*n1).first, 2) << GetJob("a").reason();
  const std::string said = WaitForEvent("a", "device_left_out");
  EXPECT_NE(said.find("goes on without n2/gpu0: there is a plan without it, and none with it: "), std::string::npos) << said;
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
