// Clusters of which some nodes offer host memory and others none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/answers/host_share.h"
#include "planner/answers/plan_answer.h"
#include "planner/plan/each_rank.h"
#include "planner/search/plan_moves.h"
#include "planner/strategies/frugal_plan.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

// n1 offers host memory, n2 none.
std::string HalfTheHosts(const std::string& gib = "512") {
  std::string toml = kMixedToml;
  toml.insert(toml.find("gpus = [\"A6000\""), "host_memory_gib = " + gib + "\n");
  return toml;
}

bool OnlyOnN1(const Plan& plan) {
  bool only = true;
  ForEachRank(plan, [&](const RankPlan& rank) { only &= !rank.offload.any() || NodeOf(rank.device) == NodeName("n1"); });
  return only;
}

TEST(MixedHostsTest, WhoMayOffloadIsAQuestionOfItsNode) {
  const auto setting = MakeSetting(SmallWorkload(), {}, HalfTheHosts());
  EXPECT_EQ(setting->MayOffload(), OffloadKinds::All()) << "some may";
  EXPECT_FALSE(setting->HostsEverywhere());
  EXPECT_EQ(setting->MayOffload(0), OffloadKinds::All());
  EXPECT_EQ(setting->MayOffload(2), OffloadKinds::None());
  EXPECT_EQ(setting->MayOffload(DeviceId("n1/gpu1")), OffloadKinds::All());
  EXPECT_EQ(setting->MayOffload(DeviceId("n2/gpu0")), OffloadKinds::None());
  EXPECT_EQ(MakeSetting(SmallWorkload())->MayOffload(), OffloadKinds::None());
}

TEST(MixedHostsTest, TheFrugalPlanKeepsMoreWhereTheHostTakesAPart) {
  const auto setting = MakeSetting(LargeWorkload(4), {}, HalfTheHosts());
  const Plan plan = FrugalPlan(*setting, {.optimizer = true});
  EXPECT_TRUE(OnlyOnN1(plan));
  EXPECT_TRUE(OffloadsOf(plan).optimizer);
  double shares = 0;
  int64_t most = INT64_MIN;
  ForEachRank(plan, [&](const RankPlan& rank) {
    shares += rank.shard_ratio;
    most = std::max(most, rank.predicted.peak_bytes - setting->UsableBytes(setting->FindDevice(rank.device)));
  });
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_LE(most, 0) << "shares go by what is free and what a byte holds";
  // More than fits on the cards alone.
  const auto larger = MakeSetting(LargeWorkload(8.2), {}, HalfTheHosts());
  EXPECT_FALSE(FindFrugal(*MakeSetting(LargeWorkload(8.2))).fits.ok());
  const FrugalAnswer answer = FindFrugal(*larger);
  EXPECT_EQ(answer.fits, absl::OkStatus());
  EXPECT_TRUE(OnlyOnN1(answer.plan));
}

TEST(MixedHostsTest, EveryStrategyKeepsItOnTheCardsOfANodeWithoutHostMemory) {
  for (const char* name : {"cephalo", "zorse", "auto"}) {
    for (const double billions : {2.0, 7.0}) {
      PlanRequest request;
      request.strategy = name;
      request.budget_nodes = 20'000;
      const auto setting = MakeSetting(LargeWorkload(billions, 64), request, HalfTheHosts());
      const auto found = PlanAndEvaluate(*setting, *FindInCatalog(name));
      EXPECT_TRUE(found.ok() || billions > 2) << name << ": " << found.status();
      if (!found.ok()) continue;
      EXPECT_TRUE(OnlyOnN1(found->plan)) << name << " " << billions;
    }
  }
  // Boundaries alone are more than the cards hold: somebody has to offload.
  PlanRequest request;
  request.strategy = "cephalo";
  request.fidelity = Fidelity::kPublished;
  const auto published = PlanAndEvaluate(*MakeSetting(LargeWorkload(2, 64), request, HalfTheHosts()), *FindInCatalog("cephalo"));
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_TRUE(OnlyOnN1(published->plan));
  EXPECT_TRUE(OffloadsOf(published->plan).activations) << "where it may, the published system does";
}

TEST(MixedHostsTest, MovesOfASearchOffloadWhereItMayBe) {
  const auto setting = MakeSetting(LargeWorkload(2), {}, HalfTheHosts());
  int offloading = 0;
  for (const Move& move : Neighbours(*setting, Evaluate(*setting, FrugalPlan(*setting, {}))->plan)) {
    EXPECT_TRUE(OnlyOnN1(move.plan)) << move.what;
    offloading += OffloadsOf(move.plan).any();
  }
  EXPECT_GE(offloading, 3) << "one of each kind";
}

}  // namespace
}  // namespace motley::planner
