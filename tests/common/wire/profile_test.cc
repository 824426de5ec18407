#include "common/wire/profile.h"

#include <gtest/gtest.h>

#include <limits>

namespace motley::wire {
namespace {

TEST(WireProfileTest, ComputeRoundTrips) {
  ComputeProfile profile;
  profile.device = DeviceId("n1/gpu0");
  profile.digest = "abc";
  profile.embedding.points = {{1, 0.01, 0.02, 3, 4}, {2, 0.03, 0.04, 5, 6}};
  profile.layer.points = {{1, 0.11, 0.12, 13, 14}, {8, 0.13, 0.14, 15, 16, 0.17, 0.18, 0.19, 0.2, 9}};
  profile.layer.part = 0.25;
  profile.head.points = {{1, 0.21, 0.22, 23, 24}};
  profile.optimizer_seconds_per_element = 1e-9;
  profile.step_overhead_seconds = 0.002;
  profile.context_bytes = 77;
  profile.profile_seconds = 4.5;
  profile.load = {1035, 71.5, 72, true, false, true};
  profile.cut_short = true;
  profile.attention = "memory-efficient";

  const v1::ComputeProfile proto = ToProto(profile);
  const ComputeProfile back = FromProto(proto);
  EXPECT_EQ(back.device, profile.device);
  EXPECT_EQ(back.digest, "abc");
  ASSERT_EQ(back.layer.points.size(), 2u);
  EXPECT_EQ(back.layer.points[1].microbatch, 8);
  EXPECT_EQ(back.layer.points[1].forward_seconds, 0.13);
  EXPECT_EQ(back.layer.points[1].backward_seconds, 0.14);
  EXPECT_EQ(back.layer.points[1].saved_bytes, 15);
  EXPECT_EQ(back.layer.points[1].workspace_bytes, 16);
  EXPECT_EQ(back.layer.points[1].backward_input_seconds, 0.17);
  EXPECT_EQ(back.layer.points[1].backward_weight_seconds, 0.18);
  EXPECT_EQ(back.layer.points[1].part_forward_seconds, 0.19);
  EXPECT_EQ(back.layer.points[1].part_backward_seconds, 0.2);
  EXPECT_EQ(back.layer.points[1].forward_workspace_bytes, 9);
  EXPECT_EQ(back.layer.part, 0.25);
  EXPECT_EQ(back.layer.points[0].backward_input_seconds, 0);
  EXPECT_EQ(back.head.part, 0);
  EXPECT_EQ(back.embedding.points[0].saved_bytes, 3);
  EXPECT_EQ(back.head.points[0].forward_seconds, 0.21);
  EXPECT_EQ(back.optimizer_seconds_per_element, 1e-9);
  EXPECT_EQ(back.step_overhead_seconds, 0.002);
  EXPECT_EQ(back.context_bytes, 77);
  EXPECT_EQ(back.profile_seconds, 4.5);
  EXPECT_EQ(back.load, profile.load);
  EXPECT_TRUE(back.cut_short);
  EXPECT_EQ(back.attention, "memory-efficient");
  EXPECT_EQ(ToProto(back).SerializeAsString(), proto.SerializeAsString());
}

TEST(WireProfileTest, ALoadThatCannotBeIsNotKept) {
  ComputeProfile profile;
  profile.load = {-1, std::numeric_limits<double>::quiet_NaN(), int64_t{1} << 60};
  EXPECT_EQ(FromProto(ToProto(profile)).load, (CardLoad{.power_limit_watts = 1000000}));
}

TEST(WireProfileTest, CollectiveRoundTrips) {
  CollectiveProfile profile;
  profile.devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
  profile.digest = "def";
  profile.points = {{1024, 0.5, 0.1, 0.2}, {4096, 1.0, 0.3, 0.4}};
  profile.links = {{0, 1, 1e-5, 2e9}, {1, 0, 2e-5, 1e9}};
  profile.overlap = {{1.25, 1.5}, {1, 2}};
  profile.barrier_seconds = 0.001;
  profile.profile_seconds = 2;

  const CollectiveProfile back = FromProto(ToProto(profile));
  EXPECT_EQ(back.devices, profile.devices);
  EXPECT_EQ(back.digest, "def");
  ASSERT_EQ(back.points.size(), 2u);
  EXPECT_EQ(back.points[1].bytes, 4096);
  EXPECT_EQ(back.points[1].skew, 1.0);
  EXPECT_EQ(back.points[1].all_gather_seconds, 0.3);
  EXPECT_EQ(back.points[1].reduce_scatter_seconds, 0.4);
  ASSERT_EQ(back.links.size(), 2u);
  EXPECT_EQ(back.links[1].from, 1);
  EXPECT_EQ(back.links[0].to, 1);
  EXPECT_EQ(back.links[0].latency_seconds, 1e-5);
  EXPECT_EQ(back.links[1].bytes_per_second, 1e9);
  ASSERT_EQ(back.overlap.size(), 2u);
  EXPECT_EQ(back.overlap[0].compute, 1.25);
  EXPECT_EQ(back.overlap[1].collectives, 2);
  EXPECT_EQ(back.barrier_seconds, 0.001);
  EXPECT_EQ(back.profile_seconds, 2);
}

}  // namespace
}  // namespace motley::wire
