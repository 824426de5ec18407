#include "coordinator/epoch/setup.h"

#include <gmock/gmock.h>

#include "common/device/link_class.h"
#include "coordinator/epoch/rendezvous.h"
#include "coordinator/state/membership.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

using StorageChecks = CoreTest;

TEST_F(StorageChecks, ANewcomerIsComparedWithANodeThatHasPassed) {
  Link& newcomer = AddNode("n1");
  Link& old = AddNode("n2");
  JobRun& run = AddRun("a");
  run.storage_ok[NodeName("n2")] = 1;
  ASSERT_TRUE(BeginStorageChecks(*core_, UsableDevices(core_->state, run), "test").ok());
  EXPECT_TRUE(newcomer.sent.empty()) << "it is asked when the token has been written";
  ASSERT_EQ(old.sent.size(), 1u);
  EXPECT_TRUE(std::get<StorageCheckCommand>(old.sent[0]).write_token);
  StorageReport report;
  report.token_seen = true;
  OnStorageReport(*core_, NodeName("n2"), report);
  ASSERT_EQ(newcomer.sent.size(), 1u);
  EXPECT_FALSE(std::get<StorageCheckCommand>(newcomer.sent[0]).write_token);
}

TEST_F(StorageChecks, WhoHasNoDataHandsTheFolderOnToTheNextNodeAtAFirstStart) {
  AddNode("n1");
  Link& second = AddNode("n2");
  Link& third = AddNode("n3");
  JobRun& run = AddRun("a");
  ASSERT_TRUE(BeginStorageChecks(*core_, UsableDevices(core_->state, run), "test").ok());
  ASSERT_EQ(run.token_writer, NodeName("n1"));
  StorageReport report;
  report.error = "data.path '/d': no such file";
  OnStorageReport(*core_, NodeName("n1"), report);
  ASSERT_EQ(second.sent.size(), 1u);
  EXPECT_TRUE(std::get<StorageCheckCommand>(second.sent[0]).write_token);
  EXPECT_TRUE(third.sent.empty());
  report.error.clear();
  OnStorageReport(*core_, NodeName("n2"), report);
  ASSERT_EQ(third.sent.size(), 1u);
  EXPECT_FALSE(std::get<StorageCheckCommand>(third.sent[0]).write_token);
}

TEST_F(StorageChecks, WhoPassedIsAskedAgainOnceTheDataIsInDoubt) {
  AddNode("n1"), AddNode("n2");
  JobRun& run = AddRun("a");
  run.storage_ok = {{NodeName("n1"), 1}, {NodeName("n2"), 1}};
  ASSERT_TRUE(BeginStorageChecks(*core_, UsableDevices(core_->state, run), "test").ok());
  EXPECT_TRUE(run.storage.empty());
  run.storage_in_doubt = true;
  ASSERT_TRUE(BeginStorageChecks(*core_, UsableDevices(core_->state, run), "test").ok());
  EXPECT_EQ(run.storage.size(), 2u);
}

TEST_F(StorageChecks, AQuestionThatIsAskedAgainIsAnsweredOnce) {
  Link& node = AddNode("n1");
  const JobRun& run = AddRun("a");
  KvGetReport get;
  get.job = run.job;
  get.key = "train/0/peer/1";
  OnKvGet(*core_, NodeName("n1"), get);
  OnKvGet(*core_, NodeName("n1"), get);
  KvSetReport set;
  set.job = run.job;
  set.key = "train/0/peer/1";
  OnKvSet(*core_, set);
  EXPECT_EQ(node.sent.size(), 1u);
}

// Two cards of one node and a job on them.
class Profiling : public CoreTest {
 protected:
  Profiling() : link_(AddNode("n1")), run_(AddRun("a")) {
    for (int i = 0; i < 2; ++i) AddCard(i);
  }
  void AddCard(int i) {
    DeviceDescription& card = run_.considered.emplace_back();
    card.id = DeviceId("n1/gpu" + std::to_string(i));
    card.kind = DeviceKind::kCuda;
    card.memory_bytes = int64_t{8} << 30;
    card.libtorch = "2.11.0";
    card.card = {.bus = "bus" + std::to_string(i), .driver = "580.65.06", .nccl_version = 22809};
  }
  // What is measured now; nothing where all is known.
  ProfileCommand Measured() {
    link_.sent.clear();
    EXPECT_TRUE(BeginProfiling(*core_).ok());
    return link_.sent.empty() ? ProfileCommand() : std::get<ProfileCommand>(link_.sent[0]);
  }
  void Report() {
    ProfileReport report;
    for (const DeviceDescription& device : run_.considered) {
      ComputeProfile& profile = report.compute.emplace_back();
      profile.device = device.id;
      for (UnitProfile* unit : {&profile.embedding, &profile.layer, &profile.head})
        unit->points = {{1, 1, 2, 3, 4}, {2, 2, 4, 6, 8}};
    }
    report.collectives.points = {{1024, 0.5, 0.1, 0.2}};
    ASSERT_TRUE(StoreProfiles(*core_, NodeName("n1"), run_.considered, report).ok());
  }

  Link& link_;
  JobRun& run_;
};

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(Profiling, WhatWasUpgradedIsMeasuredAgain) {
  EXPECT_THAT(Measured().compute_devices, ElementsAre(DeviceId("n1/gpu0"), DeviceId("n1/gpu1")));
  Report();
  EXPECT_THAT(Measured().ranks, IsEmpty()) << "all is known";

  CardDescription& card = run_.considered[1].card;
  card.driver = "590.10";
  EXPECT_THAT(Measured().compute_devices, ElementsAre(DeviceId("n1/gpu1")));
  EXPECT_TRUE(Measured().collectives);
  card.driver = "580.65.06";
  run_.considered[0].libtorch = "2.7.1";
  EXPECT_THAT(Measured().compute_devices, ElementsAre(DeviceId("n1/gpu0")));
  run_.considered[0].libtorch = "2.11.0";
  card.nccl_version = 22901;
  const ProfileCommand command = Measured();
  EXPECT_THAT(command.compute_devices, IsEmpty());
  EXPECT_TRUE(command.collectives);
  card.nccl_version = 22809;
  EXPECT_THAT(Measured().ranks, IsEmpty()) << "as it was";
}

TEST_F(Profiling, WhatIsDoubtedIsMeasuredAgain) {
  Measured();
  Report();
  run_.prediction.Begin(run_.considered);
  for (int step = 0; step < PredictionWatch::kStepsToDoubt; ++step) run_.prediction.OnStep(20, 1);
  const ProfileCommand command = Measured();
  EXPECT_THAT(command.compute_devices, ElementsAre(DeviceId("n1/gpu0"), DeviceId("n1/gpu1")));
  EXPECT_TRUE(command.collectives);
  Report();
  EXPECT_THAT(Measured().ranks, IsEmpty()) << "once";
}

TEST_F(Profiling, EveryRankIsToldWhichLinksAreMeasured) {
  EXPECT_THAT(Measured().ranks[0].link_pairs, IsEmpty()) << "one class: the first two";
  AddCard(2);
  run_.considered[0].card.nvlink_peers = {"bus2"};
  run_.considered[2].card.nvlink_peers = {"bus0"};
  const ProfileCommand command = Measured();
  ASSERT_EQ(command.ranks.size(), 3u);
  for (const RankAssignment& rank : command.ranks) {
    EXPECT_THAT(rank.link_pairs, ElementsAre(std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)));
  }
}

}  // namespace
}  // namespace motley::coordinator
