#include "coordinator/store/json.h"

#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

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

TEST(StoreJson, StepsRoundTripWithTheirLossScale) {
  StepStats step;
  step.step = 7;
  step.loss = 2.5;
  EXPECT_EQ(StepToJson(step).find("loss_scale"), std::string::npos);
  step.loss_scale = 4096;
  step.skipped = true;
  const auto back = StepFromJson(StepToJson(step));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->step, 7);
  EXPECT_EQ(back->loss_scale, 4096);
  EXPECT_TRUE(back->skipped);
}

}  // namespace
}  // namespace motley::coordinator
