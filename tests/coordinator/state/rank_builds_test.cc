#include "coordinator/state/rank_builds.h"

#include <gmock/gmock.h>

#include <set>
#include <vector>

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

constexpr char kOld[] = "ranks-0001/3/2", kNew[] = "ranks-0002/3/2";

class RankBuildsTest : public testing::Test {
 protected:
  NodeRecord& Node(const std::string& name, const std::string& build = kOld) {
    NodeRecord& node = state_.nodes[NodeName(name)];
    node.description.name = NodeName(name);
    node.description.rank_build = build;
    node.connected = true;
    return node;
  }
  // Chosen again, as a coordinator does when a node comes or goes.
  const std::string& Chosen() { return *(state_.rank_build = BuildOfMost(state_, flapping_)); }

  // A job has made steps on these, and has ranks there.
  void TrainsOn(const std::vector<std::string>& nodes) {
    state_.run.emplace();
    state_.run->has_run = true;
    for (const std::string& node : nodes) {
      state_.run->took_part.insert(DeviceId(node + "/gpu0"));
      state_.run->ranks.push_back({DeviceId(node + "/gpu0"), 1, 0});
    }
  }

  ClusterState state_;
  std::set<NodeName> flapping_;
};

TEST_F(RankBuildsTest, OfOneBuildNobodyWaits) {
  for (const char* name : {"a", "b"}) Node(name);
  EXPECT_EQ(Chosen(), kOld);
  EXPECT_FALSE(DecideHoldOfBuild(state_, Node("a")).held);
}

// Node by node: two, one, two, three train.
TEST_F(RankBuildsTest, TheJobMovesOverWhenMostNodesHaveTheNewOne) {
  for (const char* name : {"a", "b", "c"}) Node(name);
  Chosen();
  Node("c", kNew);
  EXPECT_EQ(Chosen(), kOld);
  EXPECT_TRUE(DecideHoldOfBuild(state_, state_.nodes.at(NodeName("c"))).held);
  Node("b").leaves_at = absl::Seconds(1);
  EXPECT_EQ(Chosen(), kOld) << "of two with as many the one that trains stays";
  Node("b", kNew).leaves_at.reset();
  EXPECT_EQ(Chosen(), kNew);
  EXPECT_TRUE(DecideHoldOfBuild(state_, state_.nodes.at(NodeName("a"))).held);
  Node("a", kNew);
  EXPECT_FALSE(DecideHoldOfBuild(state_, state_.nodes.at(NodeName("a"))).held);
}

TEST_F(RankBuildsTest, WhoWaitsIsToldForWhat) {
  for (const char* name : {"a", "b"}) Node(name);
  Chosen();
  const HoldDecision hold = DecideHoldOfBuild(state_, Node("c", kNew));
  EXPECT_THAT(hold.reason, HasSubstr("its ranks are of build ranks-0002/3/2, those that train of build ranks-0001/3/2"));
  EXPECT_THAT(DecideHoldOfBuild(state_, Node("d", "")).reason, HasSubstr("an unknown build"));
}

TEST_F(RankBuildsTest, DrainedLostAndLeavingNodesDoNotCount) {
  Node("a", kNew);
  for (const char* name : {"b", "c", "d"}) Node(name);
  Chosen();
  state_.nodes.at(NodeName("b")).drained = true;
  state_.nodes.at(NodeName("c")).connected = false;
  state_.nodes.at(NodeName("d")).leaves_at = absl::Seconds(1);
  EXPECT_EQ(Chosen(), kNew);
}

TEST_F(RankBuildsTest, NewcomersDoNotMoveAJobThatTrains) {
  Node("a");
  Chosen();
  TrainsOn({"a"});
  for (const char* name : {"b", "c"}) Node(name, kNew);
  EXPECT_EQ(Chosen(), kOld) << "which nobody has looked at";
  Node("a").connected = false;
  EXPECT_EQ(Chosen(), kNew) << "nobody else is here";
}

TEST_F(RankBuildsTest, NodesThatComeAndGoDoNotMoveIt) {
  for (const char* name : {"a", "b", "c"}) Node(name);
  for (const char* name : {"d", "e"}) Node(name, kNew);
  Chosen();
  flapping_ = {NodeName("b"), NodeName("c")};
  EXPECT_EQ(Chosen(), kNew);
}

// Nodes dial in one after the other, and what was chosen is not known any more.
TEST_F(RankBuildsTest, AfterARestartTheNodesWithRanksDecideATie) {
  TrainsOn({"a"});
  Node("b", kNew);
  EXPECT_EQ(Chosen(), kNew);
  Node("a");
  state_.run->took_part.insert(DeviceId("b/gpu0"));  // once, before it was upgraded
  EXPECT_EQ(Chosen(), kOld);
}

TEST_F(RankBuildsTest, WithoutNodesItStays) {
  EXPECT_EQ(BuildOfMost(state_, flapping_), std::nullopt) << "as at a coordinator's start";
  Node("a");
  Chosen();
  Node("a").connected = false;
  EXPECT_EQ(Chosen(), kOld);
  Node("b", kNew);
  EXPECT_EQ(Chosen(), kNew) << "which nobody has any more";
}

}  // namespace
}  // namespace motley::coordinator
