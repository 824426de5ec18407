#include "coordinator/state/membership.h"

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/base/version.h"

namespace motley::coordinator {
namespace {

NodeDescription Worker(const std::string& name, int64_t incarnation) {
  NodeDescription node{NodeName(name), kVersion, incarnation, "127.0.0.1", {}};
  node.protocol = kSessionProtocol;
  node.devices.resize(1);
  node.devices[0].id = DeviceId(name + "/gpu0");
  return node;
}

ClusterState With(const NodeDescription& description, absl::Duration last_seen) {
  ClusterState state;
  NodeRecord& node = state.nodes[description.name];
  node.description = description;
  node.connected = true;
  node.last_seen = last_seen;
  return state;
}

TEST(Membership, ALeaseRunsOut) {
  FakeClock clock;
  const ClusterState state = With(Worker("n1", 1), clock.Now());
  clock.Advance(absl::Seconds(10));
  EXPECT_TRUE(DecideLeases(clock.Now(), state, absl::Seconds(10)).expired.empty());
  clock.Advance(absl::Milliseconds(100));
  const auto expired = DecideLeases(clock.Now(), state, absl::Seconds(10)).expired;
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].second, "silent for 10.1 s, its lease is 10.0 s; its worker's log says whether the way is closed");
}

TEST(Membership, WhatTheJobExcludesItDoesNotUse) {
  ClusterState state;
  for (const char* name : {"n1", "n2", "n3"}) {
    state.nodes[NodeName(name)] = With(Worker(name, 1), absl::ZeroDuration()).nodes.at(NodeName(name));
  }
  JobRun run;
  run.job = JobId("j");
  PlannerSection& planner = state.jobs[run.job].config.planner;
  EXPECT_EQ(UsableDevices(state, run).size(), 3u);
  planner.exclude = " n2 ,n3/gpu0";
  EXPECT_EQ(Ids(UsableDevices(state, run)), std::vector<DeviceId>{DeviceId("n1/gpu0")});
  EXPECT_EQ(CheckPlaces(state, planner), absl::OkStatus());
  planner.exclude = "n1,n2,n3";
  EXPECT_NE(WhyNoDevice(state, run).find("planner.exclude names n1,n2,n3"), std::string::npos) << WhyNoDevice(state, run);
  planner.exclude = "n22";
  const absl::Status slip = CheckPlaces(state, planner);
  EXPECT_EQ(slip.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(
      slip.message().find("planner.exclude: no node or device 'n22' has come since the coordinator was started; did you mean "
                          "'n2'?; `motley nodes` lists those that have"),
      std::string::npos)
      << slip;
  planner = {};
  planner.pins = "stage0=n4";
  EXPECT_EQ(CheckPlaces(state, planner).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckPlaces({}, planner), absl::OkStatus()) << "before any node has joined";
}

// After a restart a member is known by its name, and what was measured by its profile.
TEST(Membership, WhatIsKnownOfBeforeTheCoordinatorsStartMayBeNamed) {
  ClusterState state = With(Worker("n1", 1), absl::ZeroDuration());
  state.nodes[NodeName("member")].description.name = NodeName("member");
  state.speeds[DeviceId("measured/gpu1")];
  PlannerSection planner;
  for (const char* place : {"member", "member/gpu7", "measured", "measured/gpu1"}) {
    planner.exclude = place;
    EXPECT_EQ(CheckPlaces(state, planner), absl::OkStatus()) << place;
  }
  for (const char* place : {"members", "measured/gpu7", "n1/gpu7"}) {
    planner.exclude = place;
    EXPECT_EQ(CheckPlaces(state, planner).code(), absl::StatusCode::kInvalidArgument) << place;
  }
}

TEST(Membership, APinOfWhatIsExcludedIsRefused) {
  PlannerSection planner;
  planner.pins = "stage0=n1, stage1=n2/gpu0";
  planner.exclude = "n3, n2";
  const absl::Status refused = CheckPlaces({}, planner);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("planner.pins: 'stage1=n2/gpu0' contradicts planner.exclude, which names n3, n2"),
            std::string::npos)
      << refused;
  planner.pins_required = false;
  EXPECT_EQ(CheckPlaces({}, planner), absl::OkStatus()) << "the pin is dropped";
}

TEST(Membership, WhenMostNodesFallSilentAtOnceTheyGetASecondLease) {
  FakeClock clock;
  ClusterState state;
  for (const char* name : {"n1", "n2", "n3"}) {
    NodeRecord& node = state.nodes[NodeName(name)];
    node.connected = true;
    node.last_seen = clock.Now();
  }
  clock.Advance(absl::Seconds(11));
  state.nodes.at(NodeName("n3")).last_seen = clock.Now();
  LeaseDecision leases = DecideLeases(clock.Now(), state, absl::Seconds(10));
  EXPECT_TRUE(leases.expired.empty());
  EXPECT_EQ(leases.brake, "2 of 3 nodes fell silent at once: rather the network than the nodes; given another 10.0 s");
  // One alone is lost as ever.
  state.nodes.at(NodeName("n2")).last_seen = clock.Now();
  EXPECT_EQ(DecideLeases(clock.Now(), state, absl::Seconds(10)).expired.size(), 1u);
  // And no brake lasts.
  clock.Advance(absl::Seconds(21));
  leases = DecideLeases(clock.Now(), state, absl::Seconds(10));
  EXPECT_EQ(leases.expired.size(), 3u);
  EXPECT_EQ(leases.brake, "");
}

TEST(Membership, ASecondWorkerOfOneNameIsRefusedWhileTheFirstLives) {
  ClusterState state = With(Worker("n1", 1), absl::ZeroDuration());
  EXPECT_EQ(CheckAdmission(state, Worker("n1", 2)).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(CheckAdmission(state, Worker("n1", 1)).ok());  // its own broken stream
  state.nodes.at(NodeName("n1")).connected = false;
  EXPECT_TRUE(CheckAdmission(state, Worker("n1", 2)).ok());
}

// A cluster is upgraded coordinator first.
TEST(Membership, ThePresentProtocolAndTheOneBeforeAreTaken) {
  NodeDescription node = Worker("n1", 1);
  node.version = "0.0.7";  // for people
  for (const int protocol : {kSessionProtocol, kSessionProtocol - 1}) {
    node.protocol = protocol;
    EXPECT_TRUE(CheckAdmission({}, node).ok()) << protocol;
  }
  for (const auto& [protocol, remedy] :
       {std::pair(kSessionProtocol + 1, "upgrade the coordinator"), std::pair(kSessionProtocol - 2, "upgrade the worker")}) {
    node.protocol = protocol;
    const absl::Status status = CheckAdmission({}, node);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    for (const std::string& words : {std::string("0.0.7"), std::string(kVersion), std::string(remedy)}) {
      EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status;
    }
  }
}

TEST(Membership, ADescriptionIsChecked) {
  NodeDescription node = Worker("n1", 1);
  node.devices[0].id = DeviceId("n2/gpu0");
  EXPECT_EQ(CheckAdmission({}, node).code(), absl::StatusCode::kInvalidArgument);
  node.devices[0].id = DeviceId("n1/" + std::string(63, 'g'));
  EXPECT_TRUE(CheckAdmission({}, node).ok());
  for (const char* part : {"", "a/b", "a b", "\xff"}) {
    node.devices[0].id = DeviceId("n1/" + std::string(part));
    EXPECT_EQ(CheckAdmission({}, node).code(), absl::StatusCode::kInvalidArgument) << part;
  }
  node.devices.resize(1025);
  for (size_t i = 0; i < node.devices.size(); ++i) node.devices[i].id = DeviceId("n1/gpu" + std::to_string(i));
  EXPECT_EQ(CheckAdmission({}, node).code(), absl::StatusCode::kInvalidArgument);
  node.devices.resize(1024);
  EXPECT_TRUE(CheckAdmission({}, node).ok());
  for (const char* address : {"", "localhost", "10.0.0.1\nn2", "10.0.0.1:9"}) {
    NodeDescription elsewhere = Worker("n1", 1);
    elsewhere.data_address = address;
    EXPECT_EQ(CheckAdmission({}, elsewhere).code(), absl::StatusCode::kInvalidArgument) << address;
  }
  node.devices.clear();
  EXPECT_EQ(CheckAdmission({}, node).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckAdmission({}, Worker("a/b", 1)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckAdmission({}, Worker("", 1)).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Membership, DrainedLostAndLeftOutDevicesAreNotUsed) {
  ClusterState state = With(Worker("n1", 1), absl::ZeroDuration());
  JobRun run;
  EXPECT_EQ(UsableDevices(state, run).size(), 1u);
  run.left_out[DeviceId("n1/gpu0")] = "its rank died 3 times in a row";
  EXPECT_TRUE(UsableDevices(state, run).empty());
  EXPECT_EQ(
      WhyNoDevice(state, run),
      "no device can be used (n1/gpu0 is left out: its rank died 3 times in a row); mend that and start motley-worker anew on "
      "n1; the job then goes on by itself");
  run.left_out.clear();
  state.nodes.at(NodeName("n1")).drained = true;
  EXPECT_TRUE(UsableDevices(state, run).empty());
}

TEST(Membership, ALostCardIsNotUsed) {
  ClusterState state = With(Worker("n1", 1), absl::ZeroDuration());
  state.nodes.at(NodeName("n1")).description.devices[0].card.lost = "GPU is lost";
  JobId job;
  EXPECT_EQ(DeviceStateName(state, DeviceId("n1/gpu0"), &job), "lost");
  EXPECT_TRUE(UsableDevices(state, JobRun()).empty());
  EXPECT_NE(WhyNoDevice(state, JobRun()).find("n1/gpu0: GPU is lost"), std::string::npos) << WhyNoDevice(state, JobRun());
}

TEST(Membership, NoDeviceNamesTheNodesAndTheRemedy) {
  ClusterState state = With(Worker("n1", 1), absl::ZeroDuration());
  state.nodes[NodeName("n2")] = state.nodes.at(NodeName("n1"));
  EXPECT_NE(WhyNoDevice({}, JobRun()).find("no worker has joined yet); start motley-worker on a node"), std::string::npos);
  state.nodes.at(NodeName("n1")).drained = true;
  state.nodes.at(NodeName("n2")).drained = true;
  EXPECT_NE(WhyNoDevice(state, JobRun()).find("2 nodes are drained: n1, n2); undrain n1, n2, or start motley-worker on a node"),
            std::string::npos)
      << WhyNoDevice(state, JobRun());
  state.nodes.at(NodeName("n2")).connected = false;
  EXPECT_NE(WhyNoDevice(state, JobRun())
                .find("(1 node is lost: n2; 1 node is drained: n1); undrain n1, or start motley-worker "
                      "again on n2"),
            std::string::npos)
      << WhyNoDevice(state, JobRun());
}

TEST(Membership, IdleIsWhatAJobCouldHave) {
  ClusterState state = With(Worker("n1", 1), absl::ZeroDuration());
  NodeRecord& node = state.nodes.at(NodeName("n1"));
  JobId job;
  const auto now = [&] { return DeviceStateName(state, DeviceId("n1/gpu0"), &job); };
  EXPECT_EQ(now(), "idle");
  node.drained = true;
  EXPECT_EQ(now(), "drained");
  node.drained = false;
  node.held = true;
  EXPECT_EQ(now(), "held");
  node.leaves_at = absl::ZeroDuration();
  EXPECT_EQ(now(), "leaving");
  node.connected = false;
  EXPECT_EQ(now(), "lost");
  node.left = true;
  EXPECT_EQ(now(), "left") << "it was told to end, and did";
  EXPECT_NE(WhyNoDevice(state, JobRun()).find("(1 node left: n1); start motley-worker again on n1"), std::string::npos)
      << WhyNoDevice(state, JobRun());
}

}  // namespace
}  // namespace motley::coordinator
