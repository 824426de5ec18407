#include "planner/live/memory_probe.h"

#include <gtest/gtest.h>

#include "common/session/assignment.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::planner {
namespace {

PlannerInput OneDevice() { return MakeInput(SmallModel(), {MixedDevices()[0]}, 8); }

int64_t BytesOf(const PlannerInput& input, int64_t samples) {
  const absl::StatusOr<TrialPlan> trial = PlanTrial(input, samples);
  EXPECT_TRUE(trial.ok()) << trial.status();
  return trial.ok() ? trial->memory.total() : 0;
}

TEST(MemoryProbe, ATrialIsOneMicrobatchThroughAllLayersByARankThatOwnsAll) {
  const PlannerInput input = OneDevice();
  const absl::StatusOr<TrialPlan> trial = PlanTrial(input, 5);
  ASSERT_TRUE(trial.ok()) << trial.status();
  ASSERT_EQ(trial->program.microbatches.size(), 1u);
  EXPECT_EQ(trial->program.microbatches[0].samples, 5);
  EXPECT_EQ(trial->program.units.size(), static_cast<size_t>(input.model.num_layers) + 2);
  RankAssignment rank;
  rank.ownership = trial->ownership;
  EXPECT_EQ(OwnedShare(rank), 1);
  EXPECT_GT(trial->memory.saved, 0) << "nothing is recomputed";
  EXPECT_EQ(trial->memory.host, 0);
}

TEST(MemoryProbe, WhatTheDeviceHasDecidesNothingOfAPlan) {
  PlannerInput input = OneDevice();
  const int64_t one = BytesOf(input, 1), many = BytesOf(input, 512);
  EXPECT_GT(many, 100 * (BytesOf(input, 2) - one));
  input.compute[0].usable_bytes = 1;
  input.devices[0].memory_bytes = 2;
  EXPECT_EQ(BytesOf(input, 1), one);
  EXPECT_EQ(BytesOf(input, 512), many);
}

TEST(MemoryProbe, TheLedgerAllowsWhatLeavesOnePercent) {
  DeviceDescription device;
  device.memory_bytes = 1000;
  EXPECT_TRUE(LedgerAllows(device, 990));
  EXPECT_FALSE(LedgerAllows(device, 991));
}

TEST(MemoryProbe, TheMostLayersOfWhichASampleFits) {
  PlannerInput input = OneDevice();
  for (int64_t layers = 1; layers < input.model.num_layers; ++layers) {
    PlannerInput fewer = input;
    fewer.model = FirstLayers(input.model, layers);
    input.devices[0].memory_bytes = BytesOf(fewer, 1) * 102 / 100;
    const absl::StatusOr<int64_t> most = MostLayers(input);
    ASSERT_TRUE(most.ok()) << most.status();
    EXPECT_EQ(*most, layers);
  }
  input.devices[0].memory_bytes = 1;
  EXPECT_EQ(*MostLayers(input), 0);
}

TEST(MemoryProbe, FirstLayersAreOfTheirKinds) {
  ModelShape model = *ModelFlavor("gemma3", "debug");
  model.num_layers = 4;
  model.layer_kinds = {LayerKind{.window = 16}, LayerKind(), LayerKind{.window = 16}, LayerKind()};
  const ModelShape two = FirstLayers(model, 2);
  EXPECT_EQ(two.num_layers, 2);
  EXPECT_EQ(two.layer_kinds, (std::vector<LayerKind>{LayerKind{.window = 16}, LayerKind()}));
}

}  // namespace
}  // namespace motley::planner
