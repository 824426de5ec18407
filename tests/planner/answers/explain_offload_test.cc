#include "planner/answers/explain_offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/pricing/price.h"
#include "planner/strategies/frugal_plan.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

// n1 offers host memory, n2 none.
std::string HalfTheHosts(const std::string& gib = "512") {
  std::string toml = kMixedToml;
  toml.insert(toml.find("gpus = [\"A6000\""), "host_memory_gib = " + gib + "\n");
  return toml;
}

TEST(ExplainOffloadTest, SaysWhoKeepsWhatWhereAndWhatItCosts) {
  const auto setting = MakeSetting(LargeWorkload(2), {}, HalfTheHosts());
  const auto evaluation = Price(*setting, FrugalPlan(*setting, {.optimizer = true}));
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  const std::string text = ExplainOffload(*setting, *evaluation);
  EXPECT_THAT(text, testing::StartsWith("what waits in the hosts' memory:\n  n1/gpu0: optimizer, "));
  EXPECT_THAT(text, HasSubstr("  by host: n1 "));
  EXPECT_THAT(text, HasSubstr(" of 512.0 GiB\n"));
  EXPECT_THAT(text, testing::ContainsRegex("the fullest link, .*n1/gpu[01].*: busy .* of .* hides behind compute"));
  EXPECT_THAT(text, HasSubstr("with all of it on the cards this plan fits, too, and takes "));
  EXPECT_EQ(text.find("n2/"), std::string::npos) << text;
  const HostLinkUse link = FullestHostLink(*setting, *evaluation);
  EXPECT_GT(link.busy_seconds, 0);
  EXPECT_GE(link.copy_seconds, link.busy_seconds * 0.999);
  EXPECT_GE(link.hidden_seconds, 0);
  EXPECT_LE(link.hidden_seconds, link.copy_seconds);
  EXPECT_EQ(ExplainOffload(*setting, *Price(*setting, FrugalPlan(*setting, {}))), "");
}

TEST(ExplainOffloadTest, SaysWhatTheCardsWouldLack) {
  const auto setting = MakeSetting(LargeWorkload(8.2), {}, HalfTheHosts());
  const auto evaluation = Price(*setting, FrugalPlan(*setting, {.optimizer = true}));
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_THAT(ExplainOffload(*setting, *evaluation), HasSubstr("with all of it on the cards this plan does not fit: "));
}

}  // namespace
}  // namespace motley::planner
