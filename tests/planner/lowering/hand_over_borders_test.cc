// Pieces between two stages against the bound of their lanes, and against the order of the samples.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/graph/program_walk.h"
#include "tests/planner/lowering/hand_overs.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

// A stage of cards [first, first + batches.size()), each rank's batch in `count` microbatches.
StagePlan InMicrobatches(const Setting& setting, size_t first, const std::vector<int64_t>& batches, int64_t count,
                         LayerRange layers) {
  std::vector<std::vector<int64_t>> dealt;
  for (const int64_t own : batches) dealt.push_back(Microbatches(own, std::max<int64_t>(1, (own + count - 1) / count)));
  return StageOf(setting, static_cast<int>(first), dealt, {layers}, 0);
}

// The batch by the cards' speed.
std::vector<int64_t> BySpeed(const Setting& setting, size_t first, size_t ranks) {
  std::vector<double> speeds;
  for (size_t i = 0; i < ranks; ++i) {
    speeds.push_back(1 / setting.costs.ForwardSeconds(setting.KindOf(static_cast<int>(first + i)), UnitKind::kLayer, 16));
  }
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  const auto batch = static_cast<double>(setting.workload.global_batch);
  std::vector<int64_t> batches;
  double upto = 0;
  int64_t before = 0;
  for (const double speed : speeds) {
    upto += speed;
    batches.push_back(std::lround(batch * upto / sum) - before);
    before += batches.back();
  }
  return batches;
}

// Forward and backward, as the programs order them.
std::vector<Border> BordersBetween(const Setting& setting, const StagePlan& first, const StagePlan& second,
                                   const std::vector<double>& rates) {
  const auto programs = ScheduleAndLower(setting, PlanOf(setting, ScheduleFamily::kGPipe, {{{first, second}}}));
  EXPECT_TRUE(programs.ok()) << programs.status();
  if (!programs.ok()) return {};
  EXPECT_EQ(CheckOrder(*programs), absl::OkStatus());
  std::vector<Border> borders(2, Border{{}, rates});
  for (const Program& program : *programs) {
    borders[0].ranks.push_back(HandOversOf<SendActivation, ReceiveActivation>(program, 1000));
    borders[1].ranks.push_back(HandOversOf<SendGradient, ReceiveGradient>(program, 1000));
  }
  return borders;
}

// Of 1 to 8 ranks to 1 to 8 with unlike links, each rank with one of these numbers of microbatches.
std::vector<Border> RandomBorders(uint32_t seed, const std::vector<int64_t>& counts, bool alike) {
  static constexpr const char* kCards[] = {"T4", "A10G", "V100-16GB", "A100-40GB"};
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::vector<Border> borders;
  for (int i = 0; i < 50; ++i) {
    const size_t first = 1 + below(8), second = 1 + below(8);
    std::vector<std::vector<std::string>> nodes;
    while (nodes.size() < first + second) nodes.push_back({kCards[below(4)]});
    const auto setting = MakeSetting(Nodes(nodes), WorkOf(MediumModel(2, false), 96));
    const int64_t count = counts[below(counts.size())], other = alike ? count : counts[below(counts.size())];
    std::vector<double> rates;
    while (rates.size() < first + second) rates.push_back(1e6 * static_cast<double>(size_t{1} << below(3)));
    const auto sends = InMicrobatches(*setting, 0, BySpeed(*setting, 0, first), count, {0, 0});
    const auto receives = InMicrobatches(*setting, first, BySpeed(*setting, first, second), other, {1, 1});
    for (Border& border : BordersBetween(*setting, sends, receives, rates)) borders.push_back(std::move(border));
  }
  return borders;
}

struct Found {
  double mean = 0, worst = 0;  // seconds over the busiest lane's
  double worst_in_turn = 0;    // over those that senders' turns allow
  double turns = 0;            // those over the busiest lane's, at worst
  double later = 0;            // microbatches that are complete later than in the order of the samples, of all
};

Found FoundOn(const char* name, const std::vector<Border>& borders) {
  Found found;
  double microbatches = 0;
  for (const Border& border : borders) {
    const double seconds = border.OrderSeconds(), lane = border.LaneSeconds(), turns = border.TurnSeconds();
    EXPECT_GE(seconds, turns * (1 - 1e-9));
    found.mean += seconds / lane / static_cast<double>(borders.size());
    found.worst = std::max(found.worst, seconds / lane);
    found.worst_in_turn = std::max(found.worst_in_turn, seconds / turns);
    found.turns = std::max(found.turns, turns / lane);
    const auto by_samples = border.BySamples().Completions();
    for (const auto& [microbatch, complete] : border.Completions()) {
      ++microbatches;
      if (complete > by_samples.at(microbatch) * (1 + 1e-9)) ++found.later;
    }
  }
  found.later /= microbatches;
  printf("    %s: mean %.3f, worst %.3f of the busiest lane (%.3f of what turns allow, which are up to %.3f), %.1f %% later\n",
         name, found.mean, found.worst, found.worst_in_turn, found.turns, found.later * 100);
  return found;
}

TEST(HandOverBordersTest, EvenPartsTakeWhatTheBusiestLaneDoes) {
  const auto setting = MakeSetting(Nodes({{"T4"}, {"T4"}, {"T4"}, {"T4"}, {"T4"}}), WorkOf(MediumModel(2, false), 24));
  for (const int64_t count : {1, 2, 4}) {
    const auto two = InMicrobatches(*setting, 0, {12, 12}, count, {0, 0});
    const auto three = InMicrobatches(*setting, 2, {8, 8, 8}, count, {1, 1});
    const Found found = FoundOn("even parts", BordersBetween(*setting, two, three, std::vector<double>(5, 1e6)));
    EXPECT_LE(found.worst, 1 + 1e-9) << count;
    EXPECT_EQ(found.later, 0) << count;
  }
}

TEST(HandOverBordersTest, OneMicrobatchARankTakesWhatTheBusiestLaneDoes) {
  const Found found = FoundOn("one microbatch a rank", RandomBorders(1, {1}, true));
  EXPECT_LE(found.worst, 1 + 1e-9);
  EXPECT_EQ(found.later, 0);
}

TEST(HandOverBordersTest, AsManyMicrobatchesOnBothSidesAreNear) {
  const Found found = FoundOn("as many on both sides", RandomBorders(2, {1, 2, 4}, true));
  EXPECT_LE(found.mean, 1.02);
  EXPECT_LE(found.worst, 1.2);
  EXPECT_LE(found.later, 0.01);
}

// On one of these borders the turns alone take 1.45 times what the busiest lane does (see HandOverLimitsTest).
TEST(HandOverBordersTest, AnyNumbersOfMicrobatchesAreNear) {
  const Found found = FoundOn("any numbers", RandomBorders(3, {1, 2, 4}, false));
  EXPECT_LE(found.mean, 1.10);
  EXPECT_LE(found.worst, 1.8);
  EXPECT_LE(found.worst_in_turn, 1.5);
  EXPECT_GE(found.turns, 1.44);
  EXPECT_LE(found.later, 0.02);
}

}  // namespace
}  // namespace motley::planner
