#include "planner/groups/grouping_seconds.h"

#include <gtest/gtest.h>

#include "planner/groups/left_out.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

// Three nodes with a T4 each.
std::unique_ptr<Setting> ThreeBoxes(double nic_gbit_per_second, int64_t batch = 48, const char* model = "gpt2-124m") {
  return SettingOf(ClusterText({{"n1", Cards("T4", 1)}, {"n2", Cards("T4", 1)}, {"n3", Cards("T4", 1)}}, nic_gbit_per_second),
                   model, batch, 512);
}

double LayerSeconds(const Setting& setting, double samples) {
  return setting.costs.ForwardSeconds(0, UnitKind::kLayer, samples) + setting.costs.BackwardSeconds(0, UnitKind::kLayer, samples);
}

TEST(GroupingSecondsTest, ComputeWhereLinksAreFast) {
  const auto setting = ThreeBoxes(16000);
  // Eight samples at a time; every sample passes every layer once, on one of three cards.
  const double ideal = 12 * 48 * LayerSeconds(*setting, 8) / 8 / 3;
  EXPECT_NEAR(RoughSeconds(*setting, {{0, 1, 2}}), ideal, 1e-3 * ideal);
  EXPECT_NEAR(RoughSeconds(*setting, {{0}, {1}, {2}}), ideal, 1e-3 * ideal);
  EXPECT_NEAR(RoughSeconds(*setting, {{0, 2}, {1}}), ideal, 1e-3 * ideal);
  EXPECT_NEAR(RoughSeconds(*setting, {{0, 1}}), 1.5 * ideal, 1e-3 * ideal) << "without the third";
}

TEST(GroupingSecondsTest, BordersWhereLinksAreSlow) {
  const double gbit = 1e-3;
  const auto setting = ThreeBoxes(gbit);
  const double border = static_cast<double>(setting->costs.BoundaryBytes(48)) / (gbit * 1e9 / 8);
  EXPECT_NEAR(RoughSeconds(*setting, {{0}, {1}}), border, 1e-6 * border);
  EXPECT_NEAR(RoughSeconds(*setting, {{0}, {1}, {2}}), 2 * border, 1e-6 * border) << "the stage between has two";
}

TEST(GroupingSecondsTest, TheSmallerSidesCardsCarryABorder) {
  const auto setting = SettingOf(
      ClusterText({{"n1", Cards("T4", 2)}, {"n2", Cards("T4", 2)}, {"n3", Cards("T4", 2)}, {"n4", Cards("T4", 2)}}, 1e-3),
      "gpt2-124m", 512, 512);
  const double border = static_cast<double>(setting->costs.BoundaryBytes(512)) / (1e-3 * 1e9 / 8);
  EXPECT_NEAR(RoughSeconds(*setting, {{0, 1}, {2, 3}}), border, 1e-6 * border);
  EXPECT_NEAR(RoughSeconds(*setting, {{0, 2}, {4, 6}}), border / 2, 1e-6 * border) << "two cards on both sides";
  EXPECT_NEAR(RoughSeconds(*setting, {{0, 2}, {4}}), border, 1e-6 * border) << "one card on one side";
  EXPECT_NEAR(RoughSeconds(*setting, {{4}, {0, 2}}), border, 1e-6 * border);
}

TEST(GroupingSecondsTest, StateOverSlowLinksMakesStagesTheBetterGuess) {
  // Seven billion parameters, eight samples: activations weigh less than layers.
  const auto slow = ThreeBoxes(1, 8, "llama-7b");
  EXPECT_LT(RoughSeconds(*slow, {{0}, {1}, {2}}), RoughSeconds(*slow, {{0, 1, 2}}) / 2);
  EXPECT_LT(RoughSeconds(*slow, {{0}}), RoughSeconds(*slow, {{0, 1, 2}})) << "one card that waits for nobody";
}

TEST(GroupingSecondsTest, ASlowerNetworkIsNeverGuessedFaster) {
  const std::vector<NodeText> nodes = {{"n1", Cards("A100-40GB", 2)}, {"n2", Cards("T4", 4)}, {"n3", Cards("V100-16GB", 2)}};
  for (const char* model : {"gpt2-124m", "llama-7b"}) {
    const auto whole = SettingOf(ClusterText(nodes), model, 64, 512);
    int slower = 0;
    for (const Grouping& grouping : WithSlowLeftOut(*whole, CandidateGroupings(*whole))) {
      double before = 0;
      for (const double gbit : {100.0, 25.0, 5.0, 1.0, 0.1}) {
        const double seconds = RoughSeconds(*SettingOf(ClusterText(nodes, gbit), model, 64, 512), grouping.groups);
        EXPECT_GE(seconds, before) << grouping.from;
        slower += before > 0 && seconds > before;
        before = seconds;
      }
    }
    EXPECT_GT(slower, 10) << model;
  }
}

}  // namespace
}  // namespace motley::planner
