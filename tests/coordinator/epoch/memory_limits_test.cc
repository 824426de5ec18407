#include "coordinator/epoch/memory_limits.h"

#include "common/session/profile.h"
#include "coordinator/epoch/setup.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

TEST(CorrectedLimit, IsWhatWasHeld) {
  EXPECT_EQ(CorrectedLimit(1000, 800, 900), 800);
  EXPECT_EQ(CorrectedLimit(0, 800, 900), 800) << "of a device without a limit";
}

TEST(CorrectedLimit, IsAsMuchBelowThePlansPeakAsTheDeviceHeldMore) {
  EXPECT_EQ(CorrectedLimit(1000, 900, 450), 225);
  EXPECT_EQ(CorrectedLimit(1000, 1000, 900), 810);
}

TEST(CorrectedLimit, FallsByAtLeastATwentieth) {
  EXPECT_EQ(CorrectedLimit(1000, 990, 990), 950);
  EXPECT_EQ(CorrectedLimit(1000, 2000, 0), 950) << "no plan that says a peak";
  EXPECT_EQ(CorrectedLimit(1000, 0, 900), 950) << "nobody knows what was held";
  EXPECT_EQ(CorrectedLimit(0, 0, 900), 0) << "nothing is known";
  int64_t limit = 1000;
  for (int i = 0; i < kMostMemoryCorrections; ++i) limit = CorrectedLimit(limit, 1000, 1000);
  EXPECT_EQ(limit, 856);
}

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
  Batch batch;
  batch.compute_profiles.emplace_back(profile, MeasuredSpeed{});
  ASSERT_TRUE(store_->Commit(batch).ok());
  ProfileReport report;
  report.job = JobId("a");
  report.compute = {profile};
  report.compute[0].usable_bytes = 0;
  report.compute[0].context_bytes = 77;
  ASSERT_TRUE(StoreProfiles(*core_, NodeName("n1"), devices, report).ok());
  const auto stored = store_->FindComputeProfile(digest);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->context_bytes, 77);
  EXPECT_EQ(stored->usable_bytes, 1000);
}

TEST(PurposesText, LeavesOutWhatTakesNothing) {
  planner::MemoryByPurpose memory;
  memory.parameters = int64_t{1} << 20, memory.workspace = int64_t{1} << 19, memory.host = 5;
  EXPECT_EQ(PurposesText(memory), "1.5 MiB: parameters 1.0 MiB, workspace 512.0 KiB");
}

}  // namespace
}  // namespace motley::coordinator
