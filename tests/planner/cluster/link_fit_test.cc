#include "planner/cluster/link_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cluster/cluster_file.h"
#include "planner/cluster/links.h"

namespace motley::planner {
namespace {

constexpr char kThree[] = R"(
[[node]]
name = "a"
gpus = [{card = "L4", count = 2}]
nic_gb_per_second = 2
[[node]]
name = "b"
gpus = ["L4"]
nic_gb_per_second = 1
)";

// What the ring of `cluster`'s links gives, `slowdown` times as long, and `around` seconds more.
CollectiveProfile Measured(const Cluster& cluster, double slowdown, double around, const std::vector<int64_t>& sizes) {
  const Links links(cluster);
  CollectiveProfile profile;
  for (const int64_t bytes : sizes) {
    for (const double skew : {1.0 / 3, 0.5, 1.0}) {
      const std::vector<double> shares = {skew, (1 - skew) / 2, (1 - skew) / 2};
      const auto seconds = [&](Collective collective) {
        const Flow flow = links.Ring(collective, std::vector<int>{0, 1, 2}, static_cast<double>(bytes), shares);
        return around + slowdown * (links.SecondsAlone(flow) - flow.latency_seconds);
      };
      profile.points.push_back({bytes, skew, seconds(Collective::kAllGather), seconds(Collective::kReduceScatter)});
    }
  }
  return profile;
}

TEST(LinkFit, FindsRateAndLatency) {
  const Cluster cluster = *ParseCluster(kThree, "c.toml");
  const auto fit = FitLinks(cluster, Measured(cluster, 1.7, 3e-4, {1 << 12, 1 << 22}));
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_NEAR(fit->slowdown, 1.7, 1e-9);
  EXPECT_NEAR(fit->latency_seconds, 1.5e-4, 1e-12);
  EXPECT_LT(fit->error, 1e-9);
}

TEST(LinkFit, TheClustersEfficiencyDoesNotCountTwice) {
  Cluster cluster = *ParseCluster(kThree, "c.toml");
  const CollectiveProfile measured = Measured(cluster, 2, 1e-4, {1 << 12, 1 << 22});
  cluster.collective_efficiency = 0.5;
  EXPECT_NEAR(FitLinks(cluster, measured)->slowdown, 2, 1e-9);
}

TEST(LinkFit, NoLatencyIsFoundWherePointsSayNothingOfIt) {
  const Cluster cluster = *ParseCluster(kThree, "c.toml");
  CollectiveProfile one = Measured(cluster, 2, 0, {1 << 20});
  one.points.resize(1);
  one.points[0].reduce_scatter_seconds = one.points[0].all_gather_seconds;
  const auto fit = FitLinks(cluster, one);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->latency_seconds, 0);
  EXPECT_NEAR(fit->slowdown, 2, 1e-6);
}

TEST(LinkFit, MeasurementsThatRiseTooSteeplyGiveNoNegativeLatency) {
  const Cluster cluster = *ParseCluster(kThree, "c.toml");
  CollectiveProfile steep = Measured(cluster, 1, 0, {1 << 12, 1 << 22});
  for (CollectivePoint& point : steep.points) {
    if (point.bytes == 1 << 12) point.all_gather_seconds /= 2, point.reduce_scatter_seconds /= 2;
  }
  const auto fit = FitLinks(cluster, steep);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->latency_seconds, 0);
  EXPECT_GT(fit->slowdown, 0);
  EXPECT_GT(fit->error, 0.1);
}

TEST(LinkFit, TimesThatDoNotRiseAreLatency) {
  const Cluster cluster = *ParseCluster(kThree, "c.toml");
  CollectiveProfile falling;
  falling.points = {{1 << 12, 0.5, 2e-3, 2e-3}, {1 << 22, 0.5, 1e-3, 1e-3}};
  const auto fit = FitLinks(cluster, falling);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->slowdown, 1);
  EXPECT_GT(fit->latency_seconds, 0);
}

TEST(LinkFit, RefusesWhatCannotBe) {
  const Cluster cluster = *ParseCluster(kThree, "c.toml");
  EXPECT_EQ(FitLinks(cluster, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FitLinks(Restrict(cluster, {0}), Measured(cluster, 1, 0, {1024})).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const CollectivePoint& bad : {CollectivePoint{1024, 0.5, 0, 1}, CollectivePoint{1024, 0.5, 1, -1},
                                     CollectivePoint{0, 0.5, 1, 1}, CollectivePoint{1024, 1.5, 1, 1}}) {
    CollectiveProfile profile;
    profile.points = {bad};
    EXPECT_THAT(FitLinks(cluster, profile).status().message(), testing::HasSubstr("profile the collectives again"));
  }
}

}  // namespace
}  // namespace motley::planner
