#include "planner/answers/more_cards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "planner/answers/plan_answer.h"
#include "planner/answers/sensitivity.h"
#include "planner/answers/ways_out.h"
#include "tests/planner/offline_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

constexpr char kUnlikeNodes[] = R"(name = "lab"
[defaults]
nic_gbit_per_second = 10
[[node]]
name = "a"
gpus = [{card = "RTX-3090", count = 1}, {card = "P40", count = 1}]
[[node]]
name = "b"
gpus = [{card = "RTX-3090", count = 2}]
)";
std::string WithTwoOnA() { return absl::StrReplaceAll(kUnlikeNodes, {{"count = 1}, {", "count = 2}, {"}}); }

std::vector<std::string> KindsOf(const Cluster& cluster) {
  std::vector<std::string> kinds;
  for (const ClusterNode& node : cluster.nodes) {
    for (const int d : node.devices)
      kinds.push_back(absl::StrCat(node.name.value(), " ", cluster.kinds[cluster.devices[d].kind].name));
  }
  return kinds;
}

TEST(MoreCardsTest, IsTheClusterOfAFileThatHasThem) {
  const Cluster cluster = *ParseCluster(kUnlikeNodes, "test"), file = *ParseCluster(WithTwoOnA(), "test");
  int node = -1;
  const Cluster larger = WithMoreCards(cluster, 0, 1, &node);
  EXPECT_EQ(node, 0);
  EXPECT_EQ(KindsOf(larger), KindsOf(file));
  EXPECT_EQ(larger.devices[1].id.value(), "a/gpu2") << "no other card is renamed";
  EXPECT_EQ(Validate(larger), absl::OkStatus());
  EXPECT_EQ(WithMoreCards(cluster, 1, 3).devices.size(), cluster.devices.size() + 3);
}

// The answer that the file gives, not that of a shorter search.
TEST(MoreCardsTest, OneMoreIsWorthWhatAFileThatHasItTakes) {
  PlanRequest request;
  request.budget_nodes = 500'000;
  const auto setting = MakeSetting(SmallWorkload(), request, kUnlikeNodes);
  const PlanAnswer now = *AnswerPlan(*setting), file = *AnswerPlan(*MakeSetting(SmallWorkload(), request, WithTwoOnA()));
  const double gain = now.evaluation.plan.predicted.step_seconds / file.evaluation.plan.predicted.step_seconds - 1;
  bool found = false;
  for (const Relaxation& relaxation : FindSensitivity(*setting, now.evaluation.plan, nullptr).relaxations) {
    if (relaxation.what != "one more RTX-3090") continue;
    found = true;
    EXPECT_NEAR(relaxation.gain, std::max(0.0, gain), 1e-9);
  }
  EXPECT_TRUE(found);
}

TEST(MoreCardsTest, AWayOutWithMoreCardsIsPricedAsAFileThatHasThem) {
  const std::string toml = "name = \"one\"\n[[node]]\nname = \"n\"\ngpus = [{card = \"RTX-3090\", count = 1}]\n";
  const auto setting = MakeSetting(LargeWorkload(2), {}, toml);
  ASSERT_FALSE(AnswerPlan(*setting).ok());
  bool found = false;
  for (const WayOut& way : FindWaysOut(*setting, nullptr, 10)) {
    EXPECT_GT(way.tokens_per_second(), 0) << way.what;
    EXPECT_THAT(ToText(*setting, {way}), HasSubstr(" tokens/s"));
    int count = 0;
    if (sscanf(way.what.c_str(), "%d more RTX-3090 on n", &count) != 1) continue;
    found = true;
    const std::string file = absl::StrReplaceAll(toml, {{"count = 1", absl::StrCat("count = ", 1 + count)}});
    EXPECT_DOUBLE_EQ(way.step_seconds,
                     AnswerPlan(*MakeSetting(LargeWorkload(2), {}, file))->evaluation.plan.predicted.step_seconds);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace motley::planner
