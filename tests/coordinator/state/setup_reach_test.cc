// Whom a set-up leaves out because of ways that are closed.
#include "coordinator/state/setup_reach.h"

#include "tests/coordinator/state/decide_fixture.h"

namespace motley::coordinator {
namespace {

class SetupReachTest : public DecideTest {
 protected:
  SetupReachTest() {
    AddNode("n3");
    state_.membership_changed = now_ - absl::Minutes(1);
    Enter(Stage::kStorage);
    run().reach.id = "setup-j-1";
    int port = 4001;
    for (auto& [name, node] : state_.nodes) {
      node.description.data_address = "10.0.0." + name.value().substr(1);
      node.description.reach_port = port++;
      StorageAnswer& answer = run().storage[name];
      answer.asked = answer.answered = true;
      answer.report.data.bytes = kEnoughBytes;
    }
  }
  void Break(const std::string& from, const std::string& to, const std::string& error = "no answer for 3 s") {
    run().reach.broken[{NodeName(from), NodeName(to)}] = error;
  }
  void BreakBoth(const std::string& a, const std::string& b) { Break(a, b), Break(b, a); }
  std::set<std::string> Out() {
    std::set<std::string> names;
    for (const auto& [name, why] : OutOfReach(state_, run())) names.insert(name.value());
    return names;
  }
  using Names = std::set<std::string>;
};

TEST_F(SetupReachTest, WhoIsNotReachedIsToBlame) {
  Break("n1", "n2");
  EXPECT_EQ(Out(), Names{"n2"});
  run().reach.broken.clear();
  Break("n2", "n1");
  EXPECT_EQ(Out(), Names{"n1"});
}

TEST_F(SetupReachTest, WhoReachesNobodyIsToBlameAndNotThem) {
  Break("n2", "n1"), Break("n2", "n3");
  EXPECT_EQ(Out(), Names{"n2"});
}

TEST_F(SetupReachTest, WithoutTheFewestAllOthersReachEachOther) {
  BreakBoth("n1", "n2"), BreakBoth("n2", "n3");
  EXPECT_EQ(Out(), Names{"n2"});
  BreakBoth("n1", "n3");
  EXPECT_EQ(Out().size(), 2u) << "nobody reaches anybody: one goes on alone";
}

TEST_F(SetupReachTest, WhereNeitherReachesTheOtherItIsWhoHasLessToSayForItself) {
  BreakBoth("n1", "n2");
  EXPECT_EQ(Out(), Names{"n2"}) << "the later by name, where all else is alike";
  node("n1").on_this_machine = false;
  EXPECT_EQ(Out(), Names{"n1"}) << "the other is on the coordinator's machine";
  node("n2").on_this_machine = false;
  node("n1").description.devices.resize(4);
  EXPECT_EQ(Out(), Names{"n2"}) << "the one with fewer devices";
  run().proven[NodeName("n2")] = 1;
  EXPECT_EQ(Out(), Names{"n1"}) << "the other has trained";
}

TEST_F(SetupReachTest, TheReasonNamesTheWayAndWhatHelps) {
  Break("n1", "n2", "node n2 is not reached at 10.0.0.2 port 4002: no answer for 3 s; is a firewall in between?");
  const std::string why = OutOfReach(state_, run()).at(NodeName("n2"));
  EXPECT_EQ(why.find("n1 does not reach n2 at 10.0.0.2:4002 (no answer for 3 s; is a firewall in between?); "), 0u) << why;
  EXPECT_NE(why.find("worker.data_address of node n2"), std::string::npos) << why;
  node("n2").description.data_address = "fd00::2";
  EXPECT_NE(OutOfReach(state_, run()).at(NodeName("n2")).find("at [fd00::2]:4002 ("), std::string::npos);
}

TEST_F(SetupReachTest, ALoopbackAddressIsSaidToBeOne) {
  node("n2").description.data_address = "127.0.0.1";
  node("n2").on_this_machine = false;
  node("n2").peer_address = "10.0.0.2";
  Break("n1", "n2", "Connection refused");
  const std::string why = OutOfReach(state_, run()).at(NodeName("n2"));
  EXPECT_NE(why.find("n1 does not reach n2 at 127.0.0.1:4002 (Connection refused); its data address 127.0.0.1"),
            std::string::npos)
      << why;
}

TEST_F(SetupReachTest, AnAddressThatTwoMachinesTellIsSaidToBeOne) {
  for (const char* name : {"n1", "n2"}) {
    node(name).description.data_address = "172.17.0.1";
    node(name).on_this_machine = false;
    node(name).peer_address = absl::StrCat("10.0.0.", name + 1);
  }
  Break("n1", "n2", "Connection refused");
  const std::string why = OutOfReach(state_, run()).at(NodeName("n2"));
  EXPECT_NE(why.find("at 172.17.0.1:4002 (Connection refused); its data address 172.17.0.1 is also that of node n1"),
            std::string::npos)
      << why;
}

TEST_F(SetupReachTest, ASetUpWaitsForTheAnswersAndThenLeavesOut) {
  run().reach.unanswered = {NodeName("n3")};
  Break("n1", "n2");
  Decision decision = Now();
  EXPECT_TRUE(std::holds_alternative<KeepOn>(decision.action));
  EXPECT_NE(decision.reason.find("waiting for n3"), std::string::npos) << decision.reason;
  now_ += config_.probe.reach_timeout + absl::Seconds(1);
  decision = Now();
  ASSERT_TRUE(std::holds_alternative<LeaveOutUnreached>(decision.action)) << decision.reason;
  EXPECT_EQ(decision.reason.find("node n2 is left out: n1 does not reach n2 at 10.0.0.2:4002"), 0u) << decision.reason;
  run().reach.broken.clear();
  EXPECT_TRUE(std::holds_alternative<RequestProfiles>(Now().action)) << "who says nothing accuses nobody";
}

// Reading much data takes minutes: what is wrong with the network is said at once.
TEST_F(SetupReachTest, ItIsSaidBeforeTheDataIsRead) {
  run().storage[NodeName("n1")].answered = false;
  EXPECT_NE(Now().reason.find("checking data and checkpoint folder on n1"), std::string::npos) << Now().reason;
  Break("n1", "n2");
  EXPECT_TRUE(std::holds_alternative<LeaveOutUnreached>(Now().action));
}

class UnreachedTest : public SetupReachTest {
 protected:
  UnreachedTest() {
    Probe& left_out = run().probes[NodeName("n2")];
    left_out.stage = ProbeStage::kUnreached;
    left_out.incarnation = 1;
    left_out.why = "n1 does not reach n2";
    left_out.begun = left_out.since = now_;
    left_out.again_at = now_ + config_.probe.reach_pause;
  }
  Probe& probe() { return run().probes.at(NodeName("n2")); }
  template <typename Action>
  bool ProbesAre() {
    const auto actions = DecideProbes(now_, state_, config_.probe);
    return actions.size() == 1 && std::holds_alternative<Action>(actions[0]);
  }
};

TEST_F(UnreachedTest, ItIsNotUsedAndThatIsSaidAsLongAsItLasts) {
  EXPECT_EQ(UsableDevices(state_, run()).size(), 2u);
  EXPECT_EQ(NodeStateName(state_, node("n2")), "refused");
  EXPECT_TRUE(std::holds_alternative<AbandonSetup>(Now().action));
  EXPECT_EQ(Now().reason, "set-up begins again: n2 is left out: n1 does not reach n2");
  Enter(Stage::kRunning);
  run().has_run = true;
  EXPECT_EQ(Now().reason, "training; without node n2: n1 does not reach n2");
  EXPECT_FALSE(JoinIsNear(now_, run())) << "nobody waits for it";
}

TEST_F(UnreachedTest, ItIsTriedAgainAlsoBeforeTheJobHasTrained) {
  EXPECT_TRUE(DecideProbes(now_, state_, config_.probe).empty());
  now_ += config_.probe.reach_pause;
  EXPECT_TRUE(ProbesAre<TryReachAgain>());
  probe().trying_again = true;
  probe().since = now_;
  probe().unanswered = {NodeName("n1")};
  EXPECT_TRUE(DecideProbes(now_, state_, config_.probe).empty());
  now_ += config_.probe.reach_timeout + absl::Seconds(1);
  EXPECT_TRUE(ProbesAre<StillUnreached>()) << "nobody says that it is reached";
  now_ = probe().since;
  probe().unanswered.clear();
  probe().unreachable = "n1 does not reach n2 still";
  EXPECT_TRUE(ProbesAre<StillUnreached>());
  probe().unreachable.clear();
  EXPECT_TRUE(ProbesAre<ReachedAgain>());
}

TEST_F(UnreachedTest, AJobThatTrainsLooksAtItAsAtANewcomerOnceItIsReached) {
  run().has_run = true;
  run().storage_ok = {{NodeName("n1"), 1}, {NodeName("n3"), 1}};
  now_ += config_.probe.reach_pause;
  EXPECT_TRUE(ProbesAre<TryReachAgain>());
  run().probes.clear();
  EXPECT_TRUE(ProbesAre<BeginProbe>());
}

TEST_F(UnreachedTest, ANewWorkerIsLookedAtAnew) {
  node("n2").description.incarnation = 2;
  EXPECT_EQ(UsableDevices(state_, run()).size(), 3u);
  EXPECT_TRUE(ProbesAre<ForgetProbe>());
}

// The model may need both: a firewall is no reason to fail.
TEST_F(UnreachedTest, AJobThatHasNoPlanWithoutItWaits) {
  Enter(Stage::kPlanning);
  run().took_part = {DeviceId("n1/gpu0"), DeviceId("n2/gpu0"), DeviceId("n3/gpu0")};
  run().prepared.emplace();
  run().prepared->status = absl::ResourceExhaustedError("200 GiB are missing");
  run().prepared->of_planner = true;
  const Decision decision = Now();
  EXPECT_TRUE(std::holds_alternative<Wait>(decision.action)) << decision.reason;
  EXPECT_NE(decision.reason.find("200 GiB are missing"), std::string::npos) << decision.reason;
  EXPECT_NE(decision.reason.find("n2/gpu0 (left out: n1 does not reach n2)"), std::string::npos) << decision.reason;
}

}  // namespace
}  // namespace motley::coordinator
