#include "coordinator/store/json.h"

#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

TEST(StoreJson, CollectiveProfilesRoundTrip) {
  CollectiveProfile profile;
  profile.devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
  profile.points = {{1024, 0.5, 0.1, 0.2}};
  profile.links = {{0, 1, 1e-5, 2e9}, {1, 0, 2e-5, 1e9}};
  const auto back = CollectiveProfileFromJson(ToJson(profile));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->links.size(), 2u);
  EXPECT_EQ(back->links[1].from, 1);
  EXPECT_EQ(back->links[1].to, 0);
  EXPECT_EQ(back->links[1].latency_seconds, 2e-5);
  EXPECT_EQ(back->links[1].bytes_per_second, 1e9);
}

TEST(StoreJson, ACollectiveProfileWithoutLinksIsRead) {
  const auto profile = CollectiveProfileFromJson(
      R"({"barrier_seconds": 0.001, "devices": ["a/gpu0", "b/gpu0"], "digest": "x", "profile_seconds": 2.0,
          "points": [{"bytes": 1024, "skew": 0.5, "all_gather_seconds": 0.1, "reduce_scatter_seconds": 0.2}]})");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->points.size(), 1u);
  EXPECT_TRUE(profile->links.empty());
}

}  // namespace
}  // namespace motley::coordinator
