#include "coordinator/epoch/memory_limits.h"

#include "common/session/profile.h"
#include "coordinator/epoch/setup.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

class StoredLimit : public CoreTest {};

// The times of a device are measured anew where its steps are not as predicted; what it ran out of stays.
TEST_F(StoredLimit, OutlivesANewMeasurementOfTheDevice) {
  AddNode("n1");
  const JobConfig& config = core_->state.jobs.at(AddRun("a").job).config;
  const std::vector<DeviceDescription> devices = core_->state.nodes.at(NodeName("n1")).description.devices;
  const std::string digest =
      ComputeProfileDigest(devices[0], *ResolveModel(config), config.training.seq_len, PrecisionOf(config.training)->compute);
  ComputeProfile profile;
  profile.device = devices[0].id;
  profile.digest = digest;
  profile.embedding.points = profile.layer.points = profile.head.points = {{1, 0.1, 0.2, 3, 4}, {2, 0.2, 0.4, 6, 8}};
  profile.usable_bytes = 1000;
  profile.memory_corrections = 2;
  Batch batch;
  batch.compute_profiles.emplace_back(profile, MeasuredSpeed{});
  ASSERT_TRUE(store_->Commit(batch).ok());
  ProfileReport report;
  report.job = JobId("a");
  report.compute = {profile};
  report.compute[0].usable_bytes = report.compute[0].memory_corrections = 0;
  report.compute[0].context_bytes = 77;
  ASSERT_TRUE(StoreProfiles(*core_, NodeName("n1"), devices, report).ok());
  const auto stored = store_->FindComputeProfile(digest);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->context_bytes, 77);
  EXPECT_EQ(stored->usable_bytes, 1000);
  EXPECT_EQ(stored->memory_corrections, 2);
  EXPECT_EQ(core_->state.speeds.at(devices[0].id).usable_bytes, 1000);
}

class FullHost : public CoreTest {
 protected:
  static constexpr int64_t kMiB = int64_t{1} << 20;

  // Two ranks on n1 that keep 60 and 20 MiB in its memory, of which it offers 100, and one on n2.
  FullHost() {
    AddNode("n1");
    AddNode("n2");
    JobRun& run = AddRun("a");
    std::vector<DeviceDescription>& devices = core_->state.nodes.at(NodeName("n1")).description.devices;
    devices.resize(2);
    devices[1].id = DeviceId("n1/gpu1");
    for (DeviceDescription& device : devices) device.node_host_memory_bytes = 100 * kMiB;
    core_->state.nodes.at(NodeName("n2")).description.devices[0].node_host_memory_bytes = 100 * kMiB;
    run.considered = devices;
    run.epoch_steps = 1;
    for (const auto& [device, bytes] : {std::pair("n1/gpu0", 60), std::pair("n1/gpu1", 20), std::pair("n2/gpu0", 50)}) {
      run.ranks.push_back({DeviceId(device)});
      run.ranks.back().planned_host_bytes = bytes * kMiB;
    }
  }
  void RunOut(size_t rank, int64_t held_bytes) {
    RankReport report;
    report.shortage = {.tier = MemoryTier::kHost, .held_bytes = held_bytes, .asked_bytes = 60 * kMiB};
    OnOutOfMemory(*core_, core_->state.run->ranks[rank], report);
  }
  int64_t Offered(const char* node) {
    return core_->state.nodes.at(NodeName(node)).description.devices.back().node_host_memory_bytes;
  }
  void NextEpoch() { core_->state.jobs.at(JobId("a")).epoch = Epoch(core_->state.jobs.at(JobId("a")).epoch.value() + 1); }
};

TEST_F(FullHost, TheNodeOffersWhatWentOncePerGeneration) {
  NextEpoch();
  RunOut(0, 40 * kMiB);
  EXPECT_EQ(Offered("n1"), 60 * kMiB) << "40 and what the other one keeps";
  EXPECT_EQ(Offered("n2"), 100 * kMiB);
  RunOut(1, 0);
  EXPECT_EQ(Offered("n1"), 60 * kMiB) << "it speaks of the same";
  const auto events = store_->EventsAfter(JobId("a"), 0, 10);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->at(0).kind, kind::kMemoryLimit);
  EXPECT_EQ(
      events->at(0).message,
      "the host memory of n1 ran out with 60.0 MiB held when n1/gpu0 asked for 60.0 MiB; the plan keeps 80.0 MiB there. Plans "
      "keep at most 60.0 MiB there until its worker starts again, and the job is planned again");
  EXPECT_EQ(core_->state.run->host_corrections.at(NodeName("n1")).times, 1);
  EXPECT_TRUE(core_->state.run->memory_corrections.empty()) << "no device ran out";
}

TEST_F(FullHost, WhatIsNotKnownIsATwentiethLess) {
  core_->state.run->ranks[1].planned_host_bytes = 0;
  NextEpoch();
  RunOut(0, 0);
  EXPECT_EQ(Offered("n1"), 57 * kMiB);
}

TEST_F(FullHost, TheFourthTimeTheJobEndsAndSaysTheBytes) {
  for (int time = 0; time < kMostMemoryCorrections; ++time) {
    NextEpoch();
    RunOut(0, 40 * kMiB);
    EXPECT_EQ(core_->state.run->memory_end, "");
  }
  NextEpoch();
  RunOut(0, 40 * kMiB);
  EXPECT_EQ(
      core_->state.run->memory_end,
      "the host memory of n1 ran out with 60.0 MiB held when n1/gpu0 asked for 60.0 MiB; the plan keeps 80.0 MiB there; what "
      "it offers was corrected 3 times before");
  EXPECT_EQ(core_->state.run->memory_end_tier, MemoryTier::kHost);
}

TEST(PurposesText, LeavesOutWhatTakesNothing) {
  planner::MemoryByPurpose memory;
  memory.parameters = int64_t{1} << 20, memory.workspace = int64_t{1} << 19, memory.host = 5;
  EXPECT_EQ(PurposesText(memory), "1.5 MiB: parameters 1.0 MiB, workspace 512.0 KiB");
}

}  // namespace
}  // namespace motley::coordinator
