#include "coordinator/store/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace motley::coordinator {
namespace {

TEST(StoreJson, ComputeProfilesRoundTrip) {
  ComputeProfile profile;
  profile.device = DeviceId("a/gpu0");
  profile.layer.points = {{1, 0.1, 0.2, 3, 4, 0.5, 0.6, 0.7, 0.8}};
  profile.layer.part = 0.25;
  profile.load = {1035, 71.5, 72, true, false, true};
  profile.cut_short = true;
  profile.attention = "flash";
  profile.usable_bytes = 900;
  profile.memory_corrections = 2;
  profile.trials = {{1, 0.5, 700}, {2, 0, 0}};
  profile.trial_layers = 3;
  const auto back = ComputeProfileFromJson(ToJson(profile));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->layer.points.size(), 1u);
  const ComputePoint& point = back->layer.points[0];
  EXPECT_EQ(point.backward_seconds, 0.2);
  EXPECT_EQ(point.workspace_bytes, 4);
  EXPECT_EQ(point.backward_input_seconds, 0.5);
  EXPECT_EQ(point.backward_weight_seconds, 0.6);
  EXPECT_EQ(point.part_forward_seconds, 0.7);
  EXPECT_EQ(point.part_backward_seconds, 0.8);
  EXPECT_EQ(back->layer.part, 0.25);
  EXPECT_EQ(back->load, profile.load);
  EXPECT_TRUE(back->cut_short);
  EXPECT_EQ(back->attention, "flash");
  EXPECT_EQ(back->usable_bytes, 900);
  EXPECT_EQ(back->memory_corrections, 2);
  EXPECT_EQ(back->trials, profile.trials);
  EXPECT_EQ(back->trial_layers, 3);
}

TEST(StoreJson, AComputeProfileOfWholePassesAloneIsRead) {
  const auto profile = ComputeProfileFromJson(
      R"({"device": "a/gpu0", "digest": "x", "layer": {"points": [{"microbatch": 2, "forward_seconds": 0.1,
          "backward_seconds": 0.2, "saved_bytes": 3, "workspace_bytes": 4}]}})");
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->layer.points.size(), 1u);
  EXPECT_EQ(profile->layer.points[0].backward_seconds, 0.2);
  EXPECT_EQ(profile->layer.points[0].backward_input_seconds, 0);
  EXPECT_EQ(profile->layer.part, 0);
  EXPECT_EQ(profile->load, CardLoad());
  EXPECT_FALSE(profile->cut_short);
  EXPECT_EQ(profile->attention, "") << "of a coordinator from before it was asked";
}

TEST(StoreJson, CollectiveProfilesRoundTrip) {
  CollectiveProfile profile;
  profile.devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
  profile.points = {{1024, 0.5, 0.1, 0.2}};
  profile.links = {{0, 1, 1e-5, 2e9}, {1, 0, 2e-5, 1e9}};
  profile.overlap = {{1.25, 1.5}};
  const auto back = CollectiveProfileFromJson(ToJson(profile));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->links.size(), 2u);
  EXPECT_EQ(back->links[1].from, 1);
  EXPECT_EQ(back->links[1].to, 0);
  EXPECT_EQ(back->links[1].latency_seconds, 2e-5);
  EXPECT_EQ(back->links[1].bytes_per_second, 1e9);
  ASSERT_EQ(back->overlap.size(), 1u);
  EXPECT_EQ(back->overlap[0].compute, 1.25);
  EXPECT_EQ(back->overlap[0].collectives, 1.5);
}

TEST(StoreJson, ACollectiveProfileWithoutLinksIsRead) {
  const auto profile = CollectiveProfileFromJson(
      R"({"barrier_seconds": 0.001, "devices": ["a/gpu0", "b/gpu0"], "digest": "x", "profile_seconds": 2.0,
          "points": [{"bytes": 1024, "skew": 0.5, "all_gather_seconds": 0.1, "reduce_scatter_seconds": 0.2}]})");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->points.size(), 1u);
  EXPECT_TRUE(profile->links.empty());
}

TEST(StoreJson, StepsRoundTripWithTheirLossScaleAndHostMemory) {
  StepStats step;
  step.step = 7;
  step.loss = 2.5;
  EXPECT_EQ(StepToJson(step).find("loss_scale"), std::string::npos);
  EXPECT_EQ(StepToJson(step).find("host_memory"), std::string::npos);
  step.loss_scale = 4096;
  step.host_memory_bytes = 12;
  step.planned_host_memory_bytes = 13;
  step.skipped = true;
  const auto back = StepFromJson(StepToJson(step));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->step, 7);
  EXPECT_EQ(back->loss_scale, 4096);
  EXPECT_EQ(back->host_memory_bytes, 12);
  EXPECT_EQ(back->planned_host_memory_bytes, 13);
  EXPECT_TRUE(back->skipped);
}

TEST(StoreJson, NumbersThatAreNotFiniteComeBackAsTheyWere) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  StepStats step;
  step.step = 7;
  step.loss = std::numeric_limits<double>::quiet_NaN();
  step.grad_norm = kInfinity;
  step.validation_loss = -kInfinity;
  step.validation_bits_per_byte = kInfinity;
  const auto back = StepFromJson(StepToJson(step));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(std::isnan(back->loss));
  EXPECT_EQ(back->grad_norm, kInfinity);
  EXPECT_EQ(back->validation_loss, -kInfinity);
  EXPECT_EQ(back->validation_bits_per_byte, kInfinity);
  const auto older = StepFromJson(R"({"step": 7, "loss": null, "validation_loss": null})");
  ASSERT_TRUE(older.ok()) << older.status();
  EXPECT_TRUE(std::isnan(older->loss));
  EXPECT_TRUE(std::isnan(*older->validation_loss));
  EXPECT_EQ(older->validation_bits_per_byte, std::nullopt);
  EXPECT_EQ(older->grad_norm, 0);
}

}  // namespace
}  // namespace motley::coordinator
