#include "coordinator/state/probe.h"

#include <gtest/gtest.h>

#include "coordinator/state/cluster.h"
#include "coordinator/state/membership.h"

namespace motley::coordinator {
namespace {

class ProbeTest : public testing::Test {
 protected:
  ProbeTest() {
    JobRecord job;
    job.id = JobId("j");
    job.config.data.path = "/data";
    job.config.checkpoint.folder = "/checkpoints";
    job.data_digest = "d";
    state_.jobs[job.id] = job;
    state_.run.emplace();
    state_.run->job = job.id;
    state_.run->has_run = true;
    AddNode("n1");
    run().storage_ok[NodeName("n1")] = 1;
    AddNode("n2");
  }
  void AddNode(const std::string& name) {
    NodeRecord& node = state_.nodes[NodeName(name)];
    node.connected = true;
    node.description.name = NodeName(name);
    node.description.incarnation = 1;
    node.description.devices.resize(1);
    node.description.devices[0].id = DeviceId(name + "/gpu0");
  }
  JobRun& run() { return *state_.run; }
  std::vector<ProbeAction> Now() { return DecideProbes(now_, state_, config_); }
  template <typename Action>
  bool NowIs(const std::string& node) {
    const auto actions = Now();
    if (actions.size() != 1 || !std::holds_alternative<Action>(actions[0])) return false;
    return std::visit(
        [&](const auto& action) {
          if constexpr (requires { action.node; }) return action.node == NodeName(node);
          if constexpr (requires { action.writer; }) return action.writer == NodeName(node);
          return false;
        },
        actions[0]);
  }
  Probe& Begin() {
    Probe& probe = run().probes[NodeName("n2")];
    probe.incarnation = 1;
    probe.begun = probe.since = now_;
    return probe;
  }

  absl::Duration now_ = absl::Seconds(1000);
  ClusterState state_;
  ProbeConfig config_;
};

TEST_F(ProbeTest, ANewcomerOfARunningJobIsProbedAndNotUsedMeanwhile) {
  EXPECT_TRUE(NowIs<BeginProbe>("n2"));
  EXPECT_EQ(UsableDevices(state_, run()).size(), 1u);
  run().storage_ok[NodeName("n2")] = 1;
  EXPECT_TRUE(Now().empty());
  EXPECT_EQ(UsableDevices(state_, run()).size(), 2u);
}

TEST_F(ProbeTest, AJobThatHasNotRunOrHasNobodyToGoOnWithLooksAtAllInItsSetUp) {
  run().has_run = false;
  EXPECT_TRUE(Now().empty());
  EXPECT_EQ(UsableDevices(state_, run()).size(), 2u);
  run().has_run = true;
  state_.nodes.at(NodeName("n1")).connected = false;
  EXPECT_TRUE(Now().empty());
  EXPECT_EQ(UsableDevices(state_, run()).size(), 1u);
  Begin();
  EXPECT_TRUE(NowIs<ForgetProbe>("n2"));
}

TEST_F(ProbeTest, GoesFromTheTokenToThePass) {
  Probe& probe = Begin();
  EXPECT_TRUE(NowIs<AskToken>("n1"));
  run().probe_token = {"t", NodeName("n1"), 1, false, ""};
  EXPECT_TRUE(Now().empty()) << "it is being written";
  run().probe_token.written = true;
  EXPECT_TRUE(NowIs<AskStorage>("n2"));
  probe.storage_asked = true;
  EXPECT_TRUE(Now().empty());
  probe.storage = StorageReport{JobId("j"), Epoch(1), "", 100, "d", true, ""};
  EXPECT_TRUE(NowIs<AskReach>("n2"));
  probe.stage = ProbeStage::kReach;
  probe.unanswered = {NodeName("n1")};
  EXPECT_TRUE(Now().empty());
  probe.unanswered.clear();
  EXPECT_TRUE(NowIs<AskProfile>("n2"));
  probe.stage = ProbeStage::kProfile;
  EXPECT_TRUE(Now().empty());
  ComputeProfile profile;
  profile.device = DeviceId("n2/gpu0");
  for (UnitProfile* unit : {&profile.embedding, &profile.layer, &profile.head}) unit->points.push_back({1, 0.1, 0.2, 10, 10});
  probe.profile = ProfileReport{JobId("j"), Epoch(1), "", {profile}, {}, ""};
  EXPECT_TRUE(NowIs<PassProbe>("n2"));
  probe.profile->compute[0].layer.points[0].forward_seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(NowIs<RefuseProbe>("n2")) << "times that cannot be";
}

TEST_F(ProbeTest, ATokenOfAWriterThatIsGoneIsAskedForAgain) {
  Begin();
  run().probe_token = {"t", NodeName("n1"), 7, true, ""};  // of its worker's earlier life
  EXPECT_TRUE(NowIs<AskToken>("n1"));
}

TEST_F(ProbeTest, ARefusedNodeIsLookedAtAgainAfterItsPauseOrWithANewWorker) {
  Probe& probe = Begin();
  probe.stage = ProbeStage::kRefused;
  probe.again_at = now_ + absl::Seconds(30);
  EXPECT_TRUE(Now().empty());
  state_.nodes.at(NodeName("n2")).description.incarnation = 2;
  EXPECT_TRUE(NowIs<BeginProbe>("n2"));
  state_.nodes.at(NodeName("n2")).description.incarnation = 1;
  now_ += absl::Seconds(31);
  EXPECT_TRUE(NowIs<BeginProbe>("n2"));
}

TEST_F(ProbeTest, EveryStageHasItsLimit) {
  for (const ProbeStage stage : {ProbeStage::kStorage, ProbeStage::kReach, ProbeStage::kProfile}) {
    Probe& probe = Begin();
    probe.stage = stage;
    probe.storage_asked = true;
    probe.unanswered = {NodeName("n1")};
    now_ += absl::Seconds(301);
    EXPECT_TRUE(NowIs<RefuseProbe>("n2")) << static_cast<int>(stage);
    probe = Probe();
  }
}

TEST_F(ProbeTest, OneTokenServesAllNewcomers) {
  Begin();
  AddNode("n3");
  run().probes[NodeName("n3")] = run().probes[NodeName("n2")];
  EXPECT_TRUE(NowIs<AskToken>("n1"));
}

TEST_F(ProbeTest, ASwapWaitsAWhileForOtherNewcomers) {
  Probe& probe = Begin();
  EXPECT_TRUE(JoinIsNear(now_, run()));
  EXPECT_FALSE(JoinIsNear(now_ + absl::Seconds(11), run()));
  probe.stage = ProbeStage::kRefused;
  EXPECT_FALSE(JoinIsNear(now_, run()));
}

TEST_F(ProbeTest, WhatGoesWrongBeforeTheFirstStepIsBlamedOnTheUnproven) {
  run().storage_ok[NodeName("n2")] = 1;
  run().considered = UsableDevices(state_, run());
  run().proven[NodeName("n1")] = 1;
  run().stage = Stage::kStarting;
  EXPECT_EQ(UnprovenNodes(state_, run()), std::set<NodeName>{NodeName("n2")});
  const Failure lost{now_, FailureKind::kNodeLost, NodeName("n1"), DeviceId(), ""};
  EXPECT_FALSE(BlamesNewcomers(state_, run(), lost)) << "a node that was there before was lost by itself";
  const Failure peers{now_, FailureKind::kPeerLost, NodeName("n1"), DeviceId("n1/gpu0"), ""};
  EXPECT_TRUE(BlamesNewcomers(state_, run(), peers));
  const Failure own{now_, FailureKind::kFailed, NodeName("n2"), DeviceId("n2/gpu0"), ""};
  EXPECT_TRUE(BlamesNewcomers(state_, run(), own));
  run().epoch_steps = 1;
  EXPECT_FALSE(BlamesNewcomers(state_, run(), own));
  run().proven.clear();
  EXPECT_TRUE(UnprovenNodes(state_, run()).empty()) << "nobody to go on with";
}

}  // namespace
}  // namespace motley::coordinator
