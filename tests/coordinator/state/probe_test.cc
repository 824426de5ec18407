#include "coordinator/state/probe.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
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
    job.data.digest = "d";
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
  // The newcomers of the only action, a trial.
  std::set<NodeName> Tried() {
    const auto actions = Now();
    return actions.size() == 1 && std::holds_alternative<TryPlan>(actions[0]) ? std::get<TryPlan>(actions[0]).nodes
                                                                              : std::set<NodeName>();
  }
  void Try(const std::vector<std::string>& nodes) {
    run().trial = TrialPlan{1, {}, now_};
    for (const std::string& node : nodes) run().trial->nodes.insert(NodeName(node));
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

TEST_F(ProbeTest, OnlyDevicesThatItWasAskedToMeasureAreMissed) {
  std::vector<DeviceDescription>& devices = state_.nodes.at(NodeName("n2")).description.devices;
  devices.resize(2);
  devices[1].id = DeviceId("n2/gpu1");
  Probe& probe = Begin();
  probe.stage = ProbeStage::kProfile;
  probe.to_measure = {DeviceId("n2/gpu1")};  // the other one was measured before
  ComputeProfile profile;
  profile.device = DeviceId("n2/gpu1");
  for (UnitProfile* unit : {&profile.embedding, &profile.layer, &profile.head}) unit->points.push_back({1, 0.1, 0.2, 10, 10});
  probe.profile = ProfileReport{JobId("j"), Epoch(1), "", {profile}, {}, ""};
  EXPECT_TRUE(NowIs<AwaitPlan>("n2"));
  probe.profile->compute[0].device = DeviceId("n2/gpu0");
  EXPECT_TRUE(NowIs<RefuseProbe>("n2"));
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
  probe.storage = StorageReport{JobId("j"), Epoch(1), "", DataSummary{100, "d"}, true, ""};
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
  EXPECT_TRUE(NowIs<AwaitPlan>("n2"));
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), 0.0, -1.0, 1e-10, 1e6}) {
    probe.profile->compute[0].layer.points[0].forward_seconds = bad;
    EXPECT_TRUE(NowIs<RefuseProbe>("n2")) << "times that cannot be: " << bad;
  }
  probe.profile->compute[0].layer.points[0].forward_seconds = 0.1;
  EXPECT_TRUE(NowIs<AwaitPlan>("n2"));
  for (double ComputePoint::*seconds : {&ComputePoint::backward_input_seconds, &ComputePoint::backward_weight_seconds,
                                        &ComputePoint::part_forward_seconds, &ComputePoint::part_backward_seconds}) {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), -1.0, 1e6}) {
      probe.profile->compute[0].head.points[0].*seconds = bad;
      EXPECT_TRUE(NowIs<RefuseProbe>("n2")) << "of halves and parts too: " << bad;
    }
    probe.profile->compute[0].head.points[0].*seconds = 0;
  }
  probe.profile->compute[0].head.part = 1;
  EXPECT_TRUE(NowIs<RefuseProbe>("n2")) << "a part is less than the whole";
  probe.stage = ProbeStage::kPlan;
  EXPECT_EQ(Tried(), std::set<NodeName>{NodeName("n2")});
  Try({"n2"});
  EXPECT_TRUE(Now().empty()) << "it is being planned";
  probe.plan = absl::OkStatus();
  run().trial.reset();
  EXPECT_TRUE(NowIs<PassProbe>("n2"));
}

TEST_F(ProbeTest, WithoutAPlanItIsRefusedWithThePlannersWords) {
  Probe& probe = Begin();
  probe.stage = ProbeStage::kPlan;
  probe.plan = absl::ResourceExhaustedError("n2/gpu0 lacks 5 bytes");
  ASSERT_TRUE(NowIs<RefuseProbe>("n2"));
  EXPECT_EQ(std::get<RefuseProbe>(Now()[0]).why, "there is no plan with it: n2/gpu0 lacks 5 bytes");
}

TEST_F(ProbeTest, AJobThatStandsStillForWantOfAPlanNeedsNoTrial) {
  Begin().stage = ProbeStage::kPlan;
  run().proven_without_plan = {DeviceId("n1/gpu0")};
  const auto actions = Now();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<PassProbe>(actions[0]));
}

// It was refused while the job did without it, and its pause has minutes to go.
TEST_F(ProbeTest, WhoWasRefusedBeforeTheJobStoodStillIsLookedAtOnceMore) {
  Probe& probe = Begin();
  probe.stage = ProbeStage::kRefused;
  probe.since = now_;
  probe.again_at = now_ + absl::Minutes(10);
  now_ += absl::Minutes(1);
  EXPECT_TRUE(Now().empty());
  run().proven_without_plan = {DeviceId("n1/gpu0")};
  run().without_plan_since = now_;
  EXPECT_TRUE(NowIs<BeginProbe>("n2"));
  probe.since = now_ + absl::Seconds(1);  // refused again
  now_ += absl::Minutes(1);
  EXPECT_TRUE(Now().empty()) << "once";
  probe.since = run().without_plan_since - absl::Seconds(1);
  state_.nodes.at(NodeName("n2")).peer_address = "192.0.2.2";
  run().address_pauses["192.0.2.2"] = {1, now_ + absl::Minutes(5)};
  EXPECT_TRUE(Now().empty()) << "its address waits";
}

TEST_F(ProbeTest, AllThatWaitAreTriedTogetherAndOneByOneWhereThatFails) {
  Begin().stage = ProbeStage::kPlan;
  AddNode("n3");
  AddNode("n4");
  run().probes[NodeName("n3")] = run().probes[NodeName("n4")] = run().probes[NodeName("n2")];
  run().probes[NodeName("n4")].stage = ProbeStage::kReach;
  run().probes[NodeName("n4")].unanswered = {NodeName("n1")};
  EXPECT_EQ(Tried(), (std::set<NodeName>{NodeName("n2"), NodeName("n3")}));
  for (const char* name : {"n2", "n3"}) run().probes[NodeName(name)].alone = true;
  EXPECT_EQ(Tried(), std::set<NodeName>{NodeName("n2")});
  Try({"n2"});
  EXPECT_TRUE(Now().empty()) << "one at a time";
  run().probes[NodeName("n2")].plan = absl::OkStatus();
  run().trial.reset();
  const auto actions = Now();
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(std::get<PassProbe>(actions[0]).node, NodeName("n2"));
  EXPECT_EQ(std::get<TryPlan>(actions[1]).nodes, std::set<NodeName>{NodeName("n3")});
}

// It came back with another worker, or as one that is held, since its last message: the trial would be of a probe that is no
// more.
TEST_F(ProbeTest, WhoseProbeEndsInThisTurnIsNotTried) {
  Begin().stage = ProbeStage::kPlan;
  EXPECT_EQ(Tried(), std::set<NodeName>{NodeName("n2")});
  NodeRecord& node = state_.nodes.at(NodeName("n2"));
  node.held = true;
  EXPECT_TRUE(NowIs<ForgetProbe>("n2"));
  node.held = false;
  node.connected = false;
  EXPECT_TRUE(NowIs<ForgetProbe>("n2"));
  node.connected = true;
  node.description.incarnation = 2;
  EXPECT_TRUE(NowIs<BeginProbe>("n2"));
  node.description.incarnation = 1;
  node.peer_address = "10.0.0.2";
  run().address_pauses["10.0.0.2"].until = now_ + absl::Minutes(1);
  EXPECT_TRUE(NowIs<HoldOff>("n2"));
}

TEST_F(ProbeTest, APlanThatDoesNotComeRefusesThoseThatItIsFor) {
  Begin().stage = ProbeStage::kPlan;
  AddNode("n3");
  run().probes[NodeName("n3")] = run().probes[NodeName("n2")];
  Try({"n2"});
  now_ += config_.plan_timeout;
  EXPECT_TRUE(Now().empty());
  now_ += absl::Seconds(1);
  const auto actions = Now();
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(std::get<RefuseProbe>(actions[0]).node, NodeName("n2"));
  EXPECT_EQ(std::get<TryPlan>(actions[1]).nodes, std::set<NodeName>{NodeName("n3")}) << "it has not had its turn";
}

TEST_F(ProbeTest, FailedSwapsCountForTheAddress) {
  state_.nodes.at(NodeName("n2")).peer_address = "10.0.0.9";
  auto& pauses = run().address_pauses;
  const auto left = [&] { return absl::ToDoubleSeconds(pauses.at("10.0.0.9").until - now_); };
  std::vector<double> seconds;
  for (int i = 0; i < 7; ++i) {
    CountFailedSwap(now_, config_, "10.0.0.9", absl::Seconds(1), &pauses);
    seconds.push_back(left());
  }
  EXPECT_EQ(seconds, (std::vector<double>{30, 60, 120, 240, 480, 600, 600}));
  const auto actions = Now();
  ASSERT_EQ(actions.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<HoldOff>(actions[0])) << "whatever its name is";
  EXPECT_EQ(std::get<HoldOff>(actions[0]).until, now_ + absl::Seconds(600));
  EXPECT_EQ(std::get<HoldOff>(actions[0]).why, "7 swaps with nodes from address 10.0.0.9 failed");
  Probe& probe = Begin();
  probe.stage = ProbeStage::kReach;
  probe.unanswered = {NodeName("n1")};
  EXPECT_TRUE(NowIs<HoldOff>("n2")) << "it is being looked at";
  probe.stage = ProbeStage::kRefused;
  probe.again_at = now_ + absl::Seconds(600);
  EXPECT_TRUE(Now().empty());
  state_.nodes.at(NodeName("n2")).description.incarnation = 2;
  EXPECT_TRUE(NowIs<HoldOff>("n2")) << "a new worker is no other address";
  now_ += absl::Seconds(600);
  EXPECT_TRUE(NowIs<BeginProbe>("n2"));
  now_ += config_.longest_pause + absl::Seconds(1);
  CountFailedSwap(now_, config_, "10.0.0.9", absl::Seconds(1), &pauses);
  EXPECT_EQ(left(), 30) << "long ago";
  CountFailedSwap(now_, config_, "10.0.0.9", absl::Seconds(12), &pauses);
  EXPECT_EQ(left(), 240) << "twenty times what it cost";
  CountFailedSwap(now_, config_, "10.0.0.9", absl::Seconds(60), &pauses);
  EXPECT_EQ(left(), 600);
  pauses.erase("10.0.0.9");
  CountFailedSwap(now_, config_, "10.0.0.9", absl::ZeroDuration(), &pauses);
  for (int i = 0; i < 2000; ++i)
    CountFailedSwap(now_ + absl::Seconds(1), config_, absl::StrCat("10.1.", i), absl::ZeroDuration(), &pauses);
  EXPECT_EQ(pauses.size(), 1000u);
}

TEST_F(ProbeTest, ThisMachineAndProvenNodesAreNotCountedByAddress) {
  NodeRecord &n1 = state_.nodes.at(NodeName("n1")), &n2 = state_.nodes.at(NodeName("n2"));
  EXPECT_FALSE(IsCountedByAddress(state_, run(), n2)) << "not known";
  for (const char* own : {"127.0.0.1", "127.3.0.1", "::1"}) {
    n2.peer_address = own;
    EXPECT_FALSE(IsCountedByAddress(state_, run(), n2)) << own;
  }
  n1.peer_address = n2.peer_address = "10.0.0.9";
  EXPECT_TRUE(IsCountedByAddress(state_, run(), n2));
  run().proven[NodeName("n1")] = 1;
  EXPECT_FALSE(IsCountedByAddress(state_, run(), n2)) << "behind one address with a node that trains";
  CountFailedSwap(now_, config_, "10.0.0.9", absl::Seconds(1), &run().address_pauses);
  EXPECT_TRUE(NowIs<BeginProbe>("n2"));
  n1.description.incarnation = 2;
  EXPECT_TRUE(IsCountedByAddress(state_, run(), n2)) << "another worker took the name";
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
  EXPECT_TRUE(BlamedNewcomers(state_, run(), lost).empty()) << "a node that was there before was lost by itself";
  const Failure peers{now_, FailureKind::kPeerLost, NodeName("n1"), DeviceId("n1/gpu0"), ""};
  EXPECT_EQ(BlamedNewcomers(state_, run(), peers), std::set<NodeName>{NodeName("n2")});
  const Failure waits{now_, FailureKind::kHung, NodeName("n1"), DeviceId("n1/gpu0"), ""};
  EXPECT_EQ(BlamedNewcomers(state_, run(), waits), std::set<NodeName>{NodeName("n2")}) << "n1 trained before: it waits for n2";
  const Failure own{now_, FailureKind::kFailed, NodeName("n2"), DeviceId("n2/gpu0"), ""};
  EXPECT_EQ(BlamedNewcomers(state_, run(), own), std::set<NodeName>{NodeName("n2")});
  AddNode("n3");
  run().storage_ok[NodeName("n3")] = 1;
  run().considered = UsableDevices(state_, run());
  EXPECT_EQ(BlamedNewcomers(state_, run(), own), std::set<NodeName>{NodeName("n2")}) << "n3 came with it and did nothing";
  EXPECT_EQ(BlamedNewcomers(state_, run(), peers).size(), 2u);
  state_.nodes.at(NodeName("n3")).connected = false;
  const Failure gone{now_, FailureKind::kNodeLost, NodeName("n3"), DeviceId(), ""};
  EXPECT_EQ(BlamedNewcomers(state_, run(), gone), std::set<NodeName>{NodeName("n3")});
  run().epoch_steps = 1;
  EXPECT_TRUE(BlamedNewcomers(state_, run(), own).empty());
  run().proven.clear();
  EXPECT_TRUE(UnprovenNodes(state_, run()).empty()) << "nobody to go on with";
}

}  // namespace
}  // namespace motley::coordinator
