#include "planner/answers/tier_fits.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/answers/plan_answer.h"
#include "planner/strategies/catalog.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

std::string WithHosts() {
  std::string toml = kMixedToml;
  toml.replace(toml.find("nic_gbit"), 0, "host_memory_gib = 512\n");
  return toml;
}

TEST(TierFitsTest, WithoutHostMemoryThereIsOneAnswerAndAReason) {
  const TierFits both = FindTierFits(*MakeSetting(LargeWorkload(2)));
  EXPECT_EQ(both.on_cards.fits, absl::OkStatus());
  EXPECT_GT(both.on_cards.step_seconds, 0);
  EXPECT_EQ(both.on_cards.offloads, OffloadKinds::None());
  EXPECT_FALSE(both.with_offload.has_value());
  EXPECT_THAT(both.no_offload_because, HasSubstr("no node offers host memory"));
  PlanRequest never;
  never.offload = OffloadKinds::None();
  EXPECT_THAT(FindTierFits(*MakeSetting(LargeWorkload(2), never, WithHosts())).no_offload_because, HasSubstr("--offload never"));
}

TEST(TierFitsTest, WhatOnlyTheHostsHoldLacksOnTheCards) {
  const auto setting = MakeSetting(LargeWorkload(9), {}, WithHosts());
  const TierFits both = FindTierFits(*setting);
  EXPECT_EQ(both.on_cards.fits.code(), absl::StatusCode::kResourceExhausted) << both.on_cards.fits;
  EXPECT_GT(both.on_cards.lacking_bytes, 0);
  EXPECT_TRUE(both.on_cards.hosts.empty());
  ASSERT_TRUE(both.with_offload.has_value());
  EXPECT_EQ(both.with_offload->fits, absl::OkStatus());
  EXPECT_TRUE(both.with_offload->offloads.takes_state());
  EXPECT_TRUE(both.with_offload->runs_here);
  EXPECT_GT(both.with_offload->step_seconds, 0);
  ASSERT_FALSE(both.with_offload->hosts.empty());
  for (const HostShare& host : both.with_offload->hosts) {
    EXPECT_GT(host.bytes, 0);
    EXPECT_GT(host.ranks, 0);
    EXPECT_LE(host.bytes, host.offered_bytes) << host.node.value();
  }
}

TEST(TierFitsTest, OffloadIsNeverTheSlowerAnswer) {
  for (const int64_t batch : {2, 8}) {
    const TierFits both = FindTierFits(*MakeSetting(LargeWorkload(batch), {}, WithHosts()));
    ASSERT_TRUE(both.with_offload.has_value());
    if (!both.on_cards.fits.ok()) continue;
    EXPECT_LE(both.with_offload->step_seconds, both.on_cards.step_seconds) << batch;
  }
}

// What is said to fit has a plan, what is not has none.
TEST(TierFitsTest, EachFitsWherePlanningFindsAPlan) {
  for (const double billions : {2, 9, 400}) {
    const auto setting = MakeSetting(LargeWorkload(billions), {}, WithHosts());
    const TierFits both = FindTierFits(*setting);
    ASSERT_TRUE(both.with_offload.has_value());
    Setting alone = *setting;
    alone.request.offload = OffloadKinds::None();
    const CatalogEntry strategy = *FindInCatalog("auto");
    EXPECT_EQ(both.on_cards.fits.ok(), PlanAndEvaluate(alone, strategy).ok()) << billions;
    EXPECT_EQ(both.with_offload->fits.ok(), PlanAndEvaluate(*setting, strategy).ok()) << billions;
  }
}

TEST(TierFitsTest, ManyHostsAreNamedFromTheFullestOn) {
  std::vector<HostShare> shares;
  for (int n = 0; n < 8; ++n) shares.push_back({NodeName("n" + std::to_string(n)), 1, (n + 1) << 20, 16 << 20});
  const std::string text = ToText(shares);
  EXPECT_THAT(text, testing::StartsWith("n7 8.0 MiB of 16.0 MiB, n6 "));
  EXPECT_THAT(text, testing::EndsWith(" and 2 nodes more"));
  shares.resize(2);
  EXPECT_EQ(ToText(shares), "n0 1.0 MiB of 16.0 MiB, n1 2.0 MiB of 16.0 MiB");
}

}  // namespace
}  // namespace motley::planner
