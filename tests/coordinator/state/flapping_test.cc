#include "coordinator/state/flapping.h"

#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

class FlappingTest : public testing::Test {
 protected:
  FlappingTest() {
    for (const char* name : {"n1", "n2", "n3", "n4", "n5"}) {
      NodeRecord& node = state_.nodes[NodeName(name)];
      node.description.name = NodeName(name);
      node.connected = true;
    }
  }
  NodeRecord& Node(const std::string& name) { return state_.nodes.at(NodeName(name)); }
  void Fall(const std::string& name) {
    Node(name).falls.push_back(now_);
    Node(name).connected = false;
  }
  void Rise(const std::string& name) {
    Node(name).up_since = now_;
    Node(name).connected = true;
  }
  HoldDecision Hold(const std::string& name) { return DecideHold(now_, state_, Node(name), config_); }

  absl::Duration now_ = absl::Seconds(1000);
  ClusterState state_;
  FlappingConfig config_;
};

TEST_F(FlappingTest, ANodeThatNeverFellIsUsedAtOnce) {
  Rise("n1");
  EXPECT_FALSE(Hold("n1").held);
}

// Up 2.5 s, down 2.5 s: after its first fall it is never used, so the others lose one pause and no more.
TEST_F(FlappingTest, ANodeThatComesAndGoesIsNotUsedAgain) {
  for (int turn = 0; turn < 24; ++turn) {
    Fall("n1");
    now_ += absl::Seconds(2.5);
    Rise("n1");
    for (int i = 0; i < 25; ++i) {
      EXPECT_TRUE(Hold("n1").held) << turn;
      now_ += absl::Milliseconds(100);
    }
  }
}

// One each 15 s, under a name of its own: the job loses two pauses, and no more.
TEST_F(FlappingTest, NewNamesFromOneAddressAreOneThatComesAndGoes) {
  state_.run.emplace();
  int used = 0;
  for (int turn = 0; turn < 40; ++turn) {
    const std::string name = "new" + std::to_string(turn);
    NodeRecord& node = state_.nodes[NodeName(name)];
    node.description.name = NodeName(name);
    node.peer_address = "10.0.0.9";
    Rise(name);
    now_ += absl::Seconds(14);
    if (!Hold(name).held) {
      ++used;
      state_.run->proven[NodeName(name)] = 1;
    }
    if (turn == 2) {
      EXPECT_EQ(Hold(name).reason,
                "a node from its address 10.0.0.9 was lost 2 times in the last 10 min: used when it has been up for 15 s");
    }
    Fall(name);
    now_ += absl::Seconds(1);
  }
  EXPECT_EQ(used, 2);
}

TEST_F(FlappingTest, WhoWasThereBeforeOrIsOfThisMachineHasNoFallsOfOthers) {
  state_.run.emplace().proven[NodeName("n2")] = 1;
  for (const char* address : {"10.0.0.9", "127.0.0.1", ""}) {
    for (const char* name : {"n1", "n2"}) Node(name).peer_address = address;
    Rise("n1");
    now_ += absl::Seconds(1);
    Rise("n2");
    Fall("n2");
    now_ += absl::Seconds(1);
    EXPECT_FALSE(Hold("n1").held) << address;
    Node("n2").falls.clear();
  }
  Fall("n2");
  now_ += absl::Seconds(1);
  for (const char* address : {"127.0.0.1", ""}) {
    for (const char* name : {"n1", "n2"}) Node(name).peer_address = address;
    Rise("n1");
    EXPECT_FALSE(Hold("n1").held) << address;
  }
  for (const char* name : {"n1", "n2"}) Node(name).peer_address = "10.0.0.9";
  EXPECT_TRUE(Hold("n1").held);
  state_.run->proven.erase(NodeName("n2"));
  EXPECT_FALSE(Hold("n1").held) << "it never trained: its fall cost the job nothing";
}

TEST_F(FlappingTest, TheHoldGrowsAndIsSaid) {
  absl::Duration last;
  for (int fall = 1; fall <= 12; ++fall) {
    Fall("n1");
    now_ += absl::Seconds(3);
    Rise("n1");
    const absl::Duration up = now_;
    EXPECT_NE(Hold("n1").reason.find(fall == 1 ? "was lost 1 time in" : "times in the last 10 min"), std::string::npos)
        << Hold("n1").reason;
    FlappingConfig remembers = config_;
    remembers.window = absl::Hours(24);
    while (DecideHold(now_, state_, Node("n1"), remembers).held) now_ += absl::Seconds(1);
    const absl::Duration hold = now_ - up;
    EXPECT_GE(hold, last);
    EXPECT_LE(hold, config_.longest_hold + absl::Seconds(1));
    last = hold;
    now_ = up + absl::Seconds(1);  // it falls again at once
  }
  EXPECT_GE(last, config_.longest_hold);
}

TEST_F(FlappingTest, OldFallsAreForgotten) {
  Fall("n1");
  now_ += absl::Minutes(11);
  Rise("n1");
  EXPECT_FALSE(Hold("n1").held);
  ForgetOldFalls(now_, config_, &Node("n1").falls);
  EXPECT_TRUE(Node("n1").falls.empty());
}

TEST_F(FlappingTest, AFallThatMostNodesShareIsNotTheirFault) {
  for (const char* name : {"n1", "n2", "n3"}) {
    Fall(name);
    now_ += absl::Milliseconds(100);
  }
  Rise("n1");
  EXPECT_FALSE(Hold("n1").held);
  Fall("n1");
  now_ += absl::Seconds(20);
  Fall("n1");
  Rise("n1");
  EXPECT_TRUE(Hold("n1").held);
}

TEST_F(FlappingTest, ANodeThatIsAloneIsUsedWhateverItDid) {
  Fall("n1");
  now_ += absl::Seconds(20);
  for (const char* name : {"n2", "n3", "n4", "n5"}) Node(name).connected = false;
  Rise("n1");
  EXPECT_FALSE(Hold("n1").held);
}

// Two of four: as likely their own fault as the network's, so they are held. Three of four are most.
TEST_F(FlappingTest, HalfOfTheNodesAreNotMost) {
  state_.nodes.erase(NodeName("n5"));
  for (const char* name : {"n1", "n2"}) Fall(name);
  EXPECT_EQ(Falls(now_, state_, Node("n1"), config_), 1);
  Fall("n3");
  EXPECT_EQ(Falls(now_, state_, Node("n1"), config_), 0);
}

}  // namespace
}  // namespace motley::coordinator
