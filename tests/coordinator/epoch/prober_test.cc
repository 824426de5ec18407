#include "coordinator/epoch/prober.h"

#include "coordinator/epoch/rendezvous.h"
#include "coordinator/epoch/trial.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

// n1 has trained; n2 and n3 joined.
class ProberTest : public CoreTest {
 protected:
  ProberTest() : run_(AddRun("a")) {
    for (const char* name : {"n1", "n2", "n3"}) AddNode(name), run_.storage_ok[NodeName(name)] = 1;
    run_.has_run = true;
    run_.proven[NodeName("n1")] = 1;
  }
  NodeRecord& Node(const char* name) { return core_->state.nodes.at(NodeName(name)); }

  JobRun& run_;
};

TEST_F(ProberTest, AFailedSwapIsCountedForTheAddressOfWhoeverMadeItFail) {
  Node("n1").peer_address = "10.0.0.1";
  Node("n2").peer_address = Node("n3").peer_address = "10.0.0.9";
  RefuseSwapped(*core_, {NodeName("n2")}, "it was silent");
  EXPECT_EQ(run_.probes.at(NodeName("n2")).stage, ProbeStage::kRefused);
  ASSERT_EQ(run_.address_pauses.size(), 1u);
  EXPECT_EQ(run_.address_pauses.at("10.0.0.9").failures, 1);
  EXPECT_FALSE(run_.storage_ok.contains(NodeName("n3"))) << "from there as well, and passed meanwhile";
  EXPECT_TRUE(run_.storage_ok.contains(NodeName("n1")));
  ProbeNewcomers(*core_);
  EXPECT_EQ(run_.probes.at(NodeName("n3")).stage, ProbeStage::kRefused);
  EXPECT_EQ(Node("n3").reason,
            "job a goes on without node n3: 1 swap with nodes from address 10.0.0.9 failed; looked at in 30 s");
}

TEST_F(ProberTest, AFailedSwapOnThisMachineIsTheNodesAlone) {
  for (const char* name : {"n1", "n2", "n3"}) Node(name).peer_address = "127.0.0.1";
  RefuseSwapped(*core_, {NodeName("n2")}, "it was silent");
  EXPECT_TRUE(run_.address_pauses.empty());
  EXPECT_TRUE(run_.storage_ok.contains(NodeName("n3")));
}

TEST_F(ProberTest, OneThatGoesInTheSwapIsCountedToo) {
  Node("n2").peer_address = "10.0.0.9";
  Node("n2").connected = false;
  Node("n2").reason = "lost";
  RefuseSwapped(*core_, {NodeName("n2")}, "node n2 was lost");
  EXPECT_TRUE(run_.probes.empty());
  EXPECT_EQ(Node("n2").reason, "lost");
  EXPECT_EQ(run_.address_pauses.at("10.0.0.9").failures, 1);
}

TEST_F(ProberTest, ATrialThatANodeLeftSaysNothingOfIt) {
  run_.trial = TrialPlan{1, {NodeName("n2"), NodeName("n3")}, clock_.Now()};
  LeaveTrial(*core_, NodeName("n2"));
  EXPECT_EQ(run_.trial->nodes, std::set<NodeName>{NodeName("n3")});
  LeaveTrial(*core_, NodeName("n3"));
  EXPECT_FALSE(run_.trial.has_value());
}

TEST_F(ProberTest, ARankHasComeWhenItSetAKeyOfItsOwn) {
  run_.ranks = {{DeviceId("n1/gpu0"), 1, 0}, {DeviceId("n2/gpu0"), 1, 0}};
  run_.ranks_in_order = true;
  KvSetReport set;
  set.job = run_.job;
  set.key = "train/0/peer/1";
  OnKvSet(*core_, set);
  EXPECT_FALSE(run_.ranks[0].met.has_value());
  EXPECT_EQ(run_.ranks[1].met, clock_.Now());
  set.key = "train/0/peer/7";
  OnKvSet(*core_, set);
}

}  // namespace
}  // namespace motley::coordinator
