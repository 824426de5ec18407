// Pieces between two stages against the bound of their lanes.
#include "planner/lowering/hand_over_order.h"

#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/lowering/program_walk.h"
#include "tests/planner/lowering/hand_overs.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

using testing::IsEmpty;

ComingPiece Piece(int32_t sender, int32_t receiver, int64_t first, int64_t samples, int64_t microbatch = 0) {
  return {ReceiveActivation{}, false, 1, microbatch, sender, receiver, first, samples};
}
// "0>3 1>3": of sender 0 to rank 3, ...
std::string Text(const std::vector<ComingPiece>& pieces) {
  std::string text;
  for (const ComingPiece& piece : pieces) absl::StrAppend(&text, text.empty() ? "" : " ", piece.sender, ">", piece.receiver);
  return text;
}

// Three samples each, two samples each: no link is idle before it is done.
TEST(HandOverOrderTest, TwoSendersAndThreeReceiversUseAllLinks) {
  HandOverOrder order;
  EXPECT_THAT(order.Add(Piece(0, 2, 0, 2), 0, 6), IsEmpty());
  EXPECT_THAT(order.Add(Piece(0, 3, 2, 1), 0, 6), IsEmpty());
  EXPECT_THAT(order.Add(Piece(1, 3, 3, 1), 0, 6), IsEmpty());
  EXPECT_EQ(Text(order.Add(Piece(1, 4, 4, 2), 0, 6)), "1>3 0>2 1>4 0>3");
  EXPECT_THAT(order.All(), IsEmpty());
}

TEST(HandOverOrderTest, ASenderWithMoreToSendWaitsForNobody) {
  HandOverOrder order;
  order.Add(Piece(0, 9, 0, 1), 0, 3);
  order.Add(Piece(1, 9, 1, 1), 0, 3);
  EXPECT_THAT(order.WithSender(2), IsEmpty());
  EXPECT_EQ(Text(order.WithSender(0)), "1>9 0>9");
  EXPECT_THAT(order.WithSender(1), IsEmpty());
  EXPECT_EQ(Text(order.Add(Piece(2, 9, 2, 1), 0, 3)), "2>9");  // the last of its round
  EXPECT_THAT(order.Add(Piece(0, 9, 3, 1), 1, 2), IsEmpty());
  EXPECT_EQ(Text(order.All()), "0>9");
}

// A microbatch that is needed first comes first.
TEST(HandOverOrderTest, MicrobatchesOfOneReceiverKeepTheirOrder) {
  HandOverOrder order;
  order.Add(Piece(0, 9, 0, 1, 0), 0, 2);
  EXPECT_EQ(Text(order.Add(Piece(1, 9, 1, 1, 1), 0, 2)), "0>9 1>9");
}

// A stage of cards [first, first + ranks): the batch by speed, each rank's in `count` microbatches.
StagePlan BySpeed(const Setting& setting, size_t first, size_t ranks, int64_t count, LayerRange layers) {
  std::vector<double> speeds;
  for (size_t i = 0; i < ranks; ++i) {
    speeds.push_back(1 / setting.costs.ForwardSeconds(setting.KindOf(static_cast<int>(first + i)), UnitKind::kLayer, 16));
  }
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  const auto batch = static_cast<double>(setting.workload.global_batch);
  std::vector<std::vector<int64_t>> dealt;
  double upto = 0;
  int64_t before = 0;
  for (const double speed : speeds) {
    upto += speed;
    const int64_t own = std::lround(batch * upto / sum) - before;
    before += own;
    dealt.push_back(Microbatches(own, std::max<int64_t>(1, (own + count - 1) / count)));
  }
  return StageOf(setting, static_cast<int>(first), dealt, {layers}, 0);
}

struct Worst {
  double mean = 0, worst = 0;
};

constexpr const char* kCards[] = {"T4", "A10G", "V100-16GB", "A100-40GB"};

// Random borders of 1 to 8 ranks to 1 to 8 with unlike links, forward and backward: seconds over the busiest lane's.
Worst OverTheBound(uint32_t seed, const std::vector<int64_t>& counts, bool alike) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  Worst over;
  const int borders = 50;
  for (int i = 0; i < borders; ++i) {
    const size_t first = 1 + below(8), second = 1 + below(8);
    std::vector<std::vector<std::string>> nodes;
    while (nodes.size() < first + second) nodes.push_back({kCards[below(4)]});
    const auto setting = MakeSetting(Nodes(nodes), WorkOf(MediumModel(2, false), 96));
    const int64_t count = counts[below(counts.size())], other = alike ? count : counts[below(counts.size())];
    const auto programs = ScheduleAndLower(
        *setting, PlanOf(*setting, ScheduleFamily::kGPipe,
                         {{{BySpeed(*setting, 0, first, count, {0, 0}), BySpeed(*setting, first, second, other, {1, 1})}}}));
    EXPECT_TRUE(programs.ok()) << programs.status();
    if (!programs.ok()) return over;
    EXPECT_EQ(CheckOrder(*programs), absl::OkStatus());
    Border forward, backward;
    for (const Program& program : *programs) {
      forward.ranks.push_back(HandOversOf<SendActivation, ReceiveActivation>(program, 1000));
      backward.ranks.push_back(HandOversOf<SendGradient, ReceiveGradient>(program, 1000));
      forward.rates.push_back(1e6 * static_cast<double>(size_t{1} << below(3)));
    }
    backward.rates = forward.rates;
    for (const Border& border : {forward, backward}) {
      const double times = border.OrderSeconds() / border.LaneSeconds();
      EXPECT_GE(times, 1 - 1e-9);
      over.mean += times / (2 * borders);
      over.worst = std::max(over.worst, times);
    }
  }
  printf("    microbatches a rank up to %d%s: mean %.3f, worst %.3f of the busiest lane\n", static_cast<int>(counts.back()),
         alike ? ", as many on both sides" : "", over.mean, over.worst);
  return over;
}

TEST(HandOverOrderTest, OneMicrobatchARankTakesWhatTheBusiestLaneDoes) {
  const Worst over = OverTheBound(1, {1}, true);
  EXPECT_LE(over.worst, 1 + 1e-9);
}

TEST(HandOverOrderTest, SeveralMicrobatchesARankAreNear) {
  const Worst alike = OverTheBound(2, {1, 2, 4}, true);
  EXPECT_LE(alike.mean, 1.05);
  EXPECT_LE(alike.worst, 1.5);
  EXPECT_LE(OverTheBound(3, {1, 2, 4}, false).mean, 1.25);
}

}  // namespace
}  // namespace motley::planner
