#include "coordinator/state/data_address.h"

#include <gtest/gtest.h>

#include "coordinator/state/examination_findings.h"

namespace motley::coordinator {
namespace {

class DataAddressTest : public testing::Test {
 protected:
  NodeRecord& Add(const std::string& name, const std::string& data_address, const std::string& peer_address) {
    NodeRecord& node = state_.nodes[NodeName(name)];
    node.connected = true;
    node.description.name = NodeName(name);
    node.description.data_address = data_address;
    node.peer_address = peer_address;
    node.on_this_machine = peer_address.empty();
    return node;
  }
  std::string Why(const std::string& name) { return WhyDataAddressIsWrong(state_, state_.nodes.at(NodeName(name))); }
  FindingState RowOf(const std::string& name) {
    for (const Finding& finding : JudgeNodes(absl::Seconds(1), state_)) {
      if (finding.what == "node " + name) return finding.state;
    }
    ADD_FAILURE() << "no row of " << name;
    return FindingState::kOk;
  }

  ClusterState state_;
};

TEST_F(DataAddressTest, LoopbackIsRightOnOneMachine) {
  Add("a", "127.0.0.1", "");
  Add("b", "127.0.0.1", "");
  EXPECT_EQ(Why("a") + Why("b"), "");
  EXPECT_EQ(RowOf("b"), FindingState::kOk);
}

TEST_F(DataAddressTest, SoItIsOnOneOtherMachine) {
  Add("b", "127.0.0.1", "10.0.0.2");
  Add("c", "::1", "10.0.0.2");
  EXPECT_EQ(Why("b") + Why("c"), "");
}

TEST_F(DataAddressTest, AMemberOfAnotherMachineMakesItWrongForWhoeverHasIt) {
  Add("a", "10.0.0.1", "");
  Add("b", "127.0.0.1", "10.0.0.2");
  EXPECT_EQ(Why("a"), "");
  EXPECT_NE(Why("b").find("its data address 127.0.0.1"), std::string::npos) << Why("b");
  EXPECT_NE(Why("b").find("node a is on another"), std::string::npos) << Why("b");
  EXPECT_EQ(RowOf("a"), FindingState::kOk);
  EXPECT_EQ(RowOf("b"), FindingState::kWrong);
}

TEST_F(DataAddressTest, OneThatAnotherMachineTellsTooIsWrongForBoth) {
  Add("a", "172.17.0.1", "");
  Add("b", "172.17.0.1", "10.0.0.2");
  Add("c", "10.0.0.3", "10.0.0.3");
  EXPECT_NE(Why("a").find("its data address 172.17.0.1 is also that of node b"), std::string::npos) << Why("a");
  EXPECT_NE(Why("b").find("set worker.data_address"), std::string::npos) << Why("b");
  EXPECT_EQ(Why("c"), "");
  EXPECT_EQ(RowOf("b"), FindingState::kWrong);
}

TEST_F(DataAddressTest, SeveralWorkersOfOneMachineMayTellOne) {
  Add("b", "10.0.0.2", "10.0.0.2");
  Add("c", "10.0.0.2", "10.0.0.2");
  EXPECT_EQ(Why("b") + Why("c"), "");
}

TEST_F(DataAddressTest, TheCoordinatorsOwnWorkerToo) {
  Add("a", "127.0.0.1", "");
  NodeRecord& b = Add("b", "10.0.0.2", "10.0.0.2");
  EXPECT_NE(Why("a").find("node b is on another"), std::string::npos) << Why("a");
  b.connected = false;
  EXPECT_EQ(Why("a"), "") << "nobody is elsewhere any more";
}

}  // namespace
}  // namespace motley::coordinator
