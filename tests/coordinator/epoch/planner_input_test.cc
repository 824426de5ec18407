#include "coordinator/epoch/planner_input.h"

#include <gtest/gtest.h>

#include "common/session/profile.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

class PlannerInputTest : public CoreTest {
 protected:
  PlannerInputTest() {
    job_.id = JobId("j");
    for (const char* id : {"a/gpu0", "b/gpu0", "b/gpu1"}) {
      DeviceDescription device;
      device.id = DeviceId(id);
      device.memory_bytes = 1 << 30;
      devices_.push_back(device);
    }
    shape_ = *ResolveModel(job_.config);
    dtype_ = *ParseDType(job_.config.training.dtype);
  }
  void Measure(const DeviceDescription& device) {
    ComputeProfile profile;
    profile.device = device.id;
    profile.digest = ComputeProfileDigest(device, shape_, job_.config.training.seq_len, dtype_);
    profile.layer.points = {{1, 0.1, 0.2, 3, 4}, {2, 0.2, 0.4, 6, 8}};
    profile.context_bytes = 7;
    Batch batch;
    batch.compute_profiles.emplace_back(profile, MeasuredSpeed{});
    ASSERT_TRUE(store_->Commit(batch).ok());
  }
  void MeasureTogether(const std::vector<DeviceDescription>& devices) {
    CollectiveProfile profile;
    profile.digest = CollectiveProfileDigest(devices, shape_, dtype_);
    profile.points = {{1024, 0.5, 0.1, 0.2}};
    Batch batch;
    batch.collective_profiles.push_back(profile);
    ASSERT_TRUE(store_->Commit(batch).ok());
  }

  JobRecord job_;
  std::vector<DeviceDescription> devices_;
  ModelShape shape_;
  DType dtype_ = DType::kFloat32;
};

TEST_F(PlannerInputTest, HoldsTheMeasuredDevices) {
  Measure(devices_[0]);
  Measure(devices_[2]);
  MeasureTogether({devices_[0], devices_[2]});
  const auto input = MakePlannerInput(*core_, job_, devices_);
  ASSERT_TRUE(input.ok()) << input.status();
  ASSERT_EQ(input->devices.size(), 2u);
  EXPECT_EQ(input->devices[1].id, devices_[2].id);
  EXPECT_EQ(input->compute[1].device, devices_[2].id);
  EXPECT_EQ(input->compute[1].context_bytes, 7);
  EXPECT_EQ(input->collectives.points.size(), 1u);
  EXPECT_EQ(input->collectives.devices.size(), 2u);
  EXPECT_EQ(input->model, shape_);
}

TEST_F(PlannerInputTest, OtherDevicesCollectivesDoNotCount) {
  for (const DeviceDescription& device : devices_) Measure(device);
  MeasureTogether({devices_[0], devices_[2]});
  const auto input = MakePlannerInput(*core_, job_, devices_);
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(input->devices.size(), 3u);
  EXPECT_TRUE(input->collectives.points.empty());
}

TEST_F(PlannerInputTest, ThoseThatTheJobLastMeasuredTogetherSayWhatOthersMayReach) {
  for (const DeviceDescription& device : devices_) Measure(device);
  const std::vector<DeviceDescription> before = {devices_[0], devices_[2]};
  MeasureTogether(before);
  JobRun& run = core_->state.run.emplace();
  run.job = job_.id;
  run.measured_together = before;
  auto input = MakePlannerInput(*core_, job_, devices_);
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_TRUE(input->collectives.points.empty());
  EXPECT_EQ(input->measured.devices, (std::vector<DeviceId>{devices_[0].id, devices_[2].id}));
  EXPECT_EQ(input->measured.points.size(), 1u);
  EXPECT_FALSE(input->predicts_links);
  run.predicts_collectives = true;
  EXPECT_TRUE(MakePlannerInput(*core_, job_, devices_)->predicts_links) << "the job runs on it";
  run.job = JobId("another");
  input = MakePlannerInput(*core_, job_, devices_);
  EXPECT_FALSE(input->predicts_links || !input->measured.points.empty());
}

TEST_F(PlannerInputTest, WhatIsNotStoredYetCounts) {
  Measure(devices_[0]);
  ComputeProfile fresh;
  fresh.device = devices_[2].id;
  fresh.context_bytes = 9;
  const auto input = MakePlannerInput(*core_, job_, devices_, {fresh});
  ASSERT_TRUE(input.ok()) << input.status();
  ASSERT_EQ(input->devices.size(), 2u);
  EXPECT_EQ(input->compute[1].context_bytes, 9);
}

TEST_F(PlannerInputTest, AnotherSequenceWasNotMeasured) {
  for (const DeviceDescription& device : devices_) Measure(device);
  job_.config.training.seq_len /= 2;
  const auto input = MakePlannerInput(*core_, job_, devices_);
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_TRUE(input->devices.empty());
}

TEST_F(PlannerInputTest, AModelThatCannotBeResolvedIsAnError) {
  job_.config.model.flavor = "none";
  EXPECT_FALSE(MakePlannerInput(*core_, job_, devices_).ok());
}

}  // namespace
}  // namespace motley::coordinator
