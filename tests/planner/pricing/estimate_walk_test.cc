#include "planner/pricing/estimate_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/costs/memory_model.h"
#include "planner/plan/virtual_stages.h"

namespace motley::planner {
namespace {

// A stage of 1F1B, or of zero bubble where it splits its backward.
struct TurnStage {
  int64_t rounds = 1, in_flight = 1;
  double forward_seconds = 0, backward_seconds = 0, ahead_seconds = 0, weight_seconds = 0;
  double border_seconds = 0, border_latency_seconds = 0;
};

std::vector<double> EndsOfTurns(const std::vector<TurnStage>& turns) {
  TimedPipeline pipeline;
  for (size_t s = 0; s < turns.size(); ++s) {
    const TurnStage& turn = turns[s];
    const auto index = static_cast<int32_t>(s);
    pipeline.places.push_back({index, static_cast<int64_t>(turns.size()), {index}, turn.rounds, turn.in_flight});
    pipeline.start_seconds.push_back(0);
    pipeline.passes.push_back({1, turn.forward_seconds, turn.backward_seconds, turn.ahead_seconds, turn.weight_seconds,
                               Border{turn.border_seconds, turn.border_latency_seconds}});
  }
  return EndsOfWalk(turns[0].weight_seconds > 0 ? ScheduleFamily::kZeroBubble : ScheduleFamily::k1F1B, pipeline);
}

double LastOf(const std::vector<double>& ends) { return *std::max_element(ends.begin(), ends.end()); }
double Last(const std::vector<TurnStage>& stages) { return LastOf(EndsOfTurns(stages)); }

// `border`: seconds of one round.
std::vector<TurnStage> Like(size_t stages, int64_t rounds, double forward, double backward, double border = 0) {
  std::vector<TurnStage> turns(stages);
  for (size_t s = 0; s < stages; ++s) {
    turns[s].rounds = rounds;
    turns[s].in_flight = static_cast<int64_t>(stages - s);
    turns[s].forward_seconds = forward;
    turns[s].backward_seconds = backward;
    if (s + 1 < stages) turns[s].border_seconds = border * static_cast<double>(rounds);
  }
  return turns;
}

TEST(EstimateWalkTest, OneStageWorksWithoutAPause) {
  EXPECT_NEAR(Last(Like(1, 7, 1, 2)), 7 * 3, 1e-9);
  std::vector<TurnStage> put_off = Like(1, 7, 1, 1);
  put_off[0].weight_seconds = 0.5;
  EXPECT_NEAR(Last(put_off), 7 * 2.5, 1e-9);
}

// Narayanan et al., "Megatron-LM" (SC'21) section 2.2: (m + s - 1)(f + b).
TEST(EstimateWalkTest, EqualStagesHaveThePublishedBubble) {
  for (const size_t stages : {2, 3, 5, 8}) {
    for (const int64_t rounds : {1, 4, 16, 192, 1000}) {
      const double ideal = static_cast<double>(rounds + static_cast<int64_t>(stages) - 1) * 3;
      EXPECT_NEAR(Last(Like(stages, rounds, 1, 2)), ideal, 1e-6 * ideal) << stages << " stages, " << rounds << " rounds";
    }
  }
}

// Qi et al., "Zero Bubble Pipeline Parallelism" (ICLR'24) section 2.3: ZB-H1 leaves (s - 1)(f + b_input - b_weights).
TEST(EstimateWalkTest, WeightsPutOffFillTheBubble) {
  std::vector<TurnStage> turns = Like(4, 16, 1, 1);
  for (TurnStage& turn : turns) turn.weight_seconds = 1;
  const double ideal = 16 * 3 + 3 * (1 + 1 - 1);
  EXPECT_GE(Last(turns), ideal - 1e-9);
  EXPECT_LE(Last(turns), ideal + 1) << "one forward's misfit";
  EXPECT_LT(Last(turns), (16 + 3) * 3) << "1F1B";
}

// Stages of two or more virtual stages that all take as long. `border`: seconds of one round's transfer.
double LastOfVirtual(ScheduleFamily family, int64_t stages, size_t ministages, int64_t rounds, const TimedPass& pass) {
  TimedPipeline pipeline;
  for (int64_t s = 0; s < stages; ++s) {
    const int64_t limit =
        InFlight(family, static_cast<int>(s), static_cast<int>(stages), static_cast<int64_t>(ministages), rounds);
    pipeline.places.push_back({s, stages, {}, rounds, limit});
  }
  for (const VirtualStage& v : MappedStages(TraitsOf(family).map, static_cast<size_t>(stages), ministages)) {
    pipeline.places[v.stage].virtual_stages.push_back(static_cast<int32_t>(pipeline.passes.size()));
    pipeline.passes.push_back(pass);
  }
  pipeline.start_seconds.assign(static_cast<size_t>(stages), 0);
  return LastOf(EndsOfWalk(family, pipeline));
}

// The same section: v ministages a stage leave a v-th of the bubble.
TEST(EstimateWalkTest, MinistagesInterleavedDivideTheBubble) {
  for (const int64_t stages : {2, 4, 8}) {
    for (const size_t ministages : {2, 3}) {
      for (const int64_t rounds : {stages, 4 * stages, 100 * stages}) {
        const auto v = static_cast<double>(ministages);
        const double ideal = static_cast<double>(rounds) * 3 + static_cast<double>(stages - 1) * 3 / v;
        const TimedPass pass = {1 / v, 1 / v, 2 / v, 0, 0, {}};
        EXPECT_NEAR(LastOfVirtual(ScheduleFamily::kInterleaved, stages, ministages, rounds, pass), ideal, 1e-6 * ideal)
            << stages << " stages of " << ministages << ", " << rounds << " rounds";
      }
    }
  }
}

// Qi et al., section 6: nothing but the fill of one ministage, where forward and both halves of the backward take as long; from
// 2 S - 1 rounds on.
TEST(EstimateWalkTest, ZeroBubbleInAVLeavesTheFillOfOneMinistage) {
  for (const int64_t stages : {2, 4, 8}) {
    for (const int64_t rounds : {2 * stages - 1, 4 * stages, int64_t{1000}}) {
      const double ideal = static_cast<double>(rounds) * 3 + static_cast<double>(stages - 1) / 2;
      EXPECT_NEAR(LastOfVirtual(ScheduleFamily::kZeroBubbleV, stages, 2, rounds, {0.5, 0.5, 0.5, 0, 0.5, {}}), ideal,
                  1e-6 * ideal)
          << stages << " stages, " << rounds << " rounds";
    }
  }
}

// One round down two stages, twice, and back: 3 hops each way. In a V the turn is no hop.
TEST(EstimateWalkTest, EveryBorderBetweenStagesIsCrossed) {
  const TimedPass pass = {0.5, 1, 2, 0, 0, {4, 1}};
  EXPECT_NEAR(LastOfVirtual(ScheduleFamily::kInterleaved, 2, 2, 1, pass), 4 * 3 + 2 * 3 * 5, 1e-9);
  const TimedPass split = {0.5, 1, 1, 0, 1, {4, 1}};
  EXPECT_NEAR(LastOfVirtual(ScheduleFamily::kZeroBubbleV, 2, 2, 1, split), 4 * 2 + 2 * 2 * 5 + 2, 1e-9)
      << "the first stage's weights come last";
}

// f = 1, b = 2 and a border of 2 s: a microbatch comes back to the first stage 10 s after its forward began, k of them in
// flight go every 10 / k s; four go at the stage's own pace of 3 s.
TEST(EstimateWalkTest, SlowBorderByMicrobatchesInFlight) {
  const auto pace = [](int64_t in_flight) {
    std::vector<TurnStage> turns = Like(2, 60, 1, 2, 2), more = Like(2, 100, 1, 2, 2);
    turns[0].in_flight = more[0].in_flight = in_flight;
    return (Last(more) - Last(turns)) / 40;
  };
  EXPECT_NEAR(pace(1), 10, 1e-9);
  EXPECT_NEAR(pace(2), 5, 1e-9);
  EXPECT_NEAR(pace(4), 3, 1e-9);
  EXPECT_NEAR(pace(8), 3, 1e-9);
}

TEST(EstimateWalkTest, ABorderCarriesOneTransferAfterTheOther) {
  // The border binds: 5 s for each round of 3 s, out and back at once.
  std::vector<TurnStage> turns = Like(2, 40, 1, 2, 5);
  turns[0].in_flight = 40;
  EXPECT_NEAR(Last(turns), 1 + 40 * 5 + 3 + 5 + 2, 1e-9);
  // The same 5 s as latency.
  turns = Like(2, 40, 1, 2, 0);
  turns[0].in_flight = 40;
  turns[0].border_latency_seconds = 5;
  EXPECT_NEAR(Last(turns), 1 + 40 * 5 + 3 + 5 + 2, 1e-9);
}

// The stage between two borders of 2 s sends samples on and gradients back, 4 s each round, and works 3 s.
TEST(EstimateWalkTest, AStageBetweenSendsBothWays) {
  std::vector<TurnStage> turns = Like(3, 100, 1, 2, 2), fewer = Like(3, 60, 1, 2, 2);
  for (std::vector<TurnStage>* stages : {&turns, &fewer}) {
    for (size_t s = 0; s < 2; ++s) (*stages)[s].in_flight = 20 - 10 * static_cast<int64_t>(s);
  }
  EXPECT_NEAR((Last(turns) - Last(fewer)) / 40, 4, 1e-9);
}

// The first stage sends two microbatches over a border of 4 s, which come at 5 and at 9 s. The second computes the first one
// until 6 s, the third has its gradient at 8 s. The second receives it behind the other microbatch, which was sent first, though
// it needs the gradient first: backward 9 to 11 s, forward until 12 s. That goes on to the third stage behind the gradient for
// the first, at 15 s, is back at 17 s and done at 19 s; a second earlier if the gradient had been received at 8 s.
TEST(EstimateWalkTest, AStageReceivesInTheOrderInWhichItIsSentTo) {
  std::vector<TurnStage> turns = Like(3, 2, 1, 2);
  turns[1].in_flight = 1;
  turns[2].backward_seconds = 1;
  turns[0].border_seconds = 2 * 4.0;
  EXPECT_NEAR(EndsOfTurns(turns)[1], 19, 1e-9);
}

// Two stages, one microbatch: 1 s forward each, then 3 s of which 1 s is computed again before the gradient comes.
TEST(EstimateWalkTest, RecomputationDoesNotWaitForTheGradient) {
  std::vector<TurnStage> turns = Like(2, 1, 1, 3);
  EXPECT_NEAR(Last(turns), 1 + 1 + 3 + 3, 1e-9);
  for (TurnStage& turn : turns) turn.ahead_seconds = 1;
  EXPECT_NEAR(Last(turns), 1 + 1 + 3 + 2, 1e-9);
}

TEST(EstimateWalkTest, UnlikeRoundsWaitForTheirSamplesAndEnd) {
  // One forward of the second stage needs all eight of the first, whose limit is two.
  std::vector<TurnStage> turns = Like(2, 8, 1, 2);
  turns[1].rounds = 1;
  turns[1].forward_seconds = 8;
  turns[1].backward_seconds = 16;
  EXPECT_NEAR(Last(turns), 8 + 8 + 16 + 16, 1e-9);
  // And the other way round: the second stage's first six of twelve come with the first round, 12 s; its last round leaves
  // the first stage 24 s of backward.
  turns = Like(2, 12, 1, 2);
  turns[0].rounds = 2;
  turns[0].forward_seconds = 6;
  turns[0].backward_seconds = 12;
  EXPECT_NEAR(EndsOfTurns(turns)[1], 6 + 12 * 3, 1e-9);
  EXPECT_NEAR(Last(turns), 6 + 12 * 3 + 12, 1e-9);
}

class RandomTurns {
 public:
  explicit RandomTurns(uint64_t seed) : random_(seed) {}
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  std::vector<TurnStage> Next(int64_t most_rounds, bool like_rounds) {
    std::vector<TurnStage> turns(static_cast<size_t>(1 + Below(5)));
    const bool puts_off = Below(2) == 0;
    const int64_t rounds = 1 + Below(most_rounds);
    for (size_t s = 0; s < turns.size(); ++s) {
      TurnStage& turn = turns[s];
      turn.rounds = like_rounds ? rounds : 1 + Below(most_rounds);
      turn.in_flight = 1 + Below(8);
      if (like_rounds && s > 0) turn.in_flight = std::min(turn.in_flight, turns[s - 1].in_flight);  // no more than come through
      turn.forward_seconds = static_cast<double>(1 + Below(20));
      turn.backward_seconds = static_cast<double>(1 + Below(40));
      if (puts_off) turn.weight_seconds = static_cast<double>(1 + Below(20));
      if (s + 1 < turns.size()) turn.border_seconds = static_cast<double>(Below(30) * turn.rounds);
      turn.border_latency_seconds = static_cast<double>(Below(5));
    }
    return turns;
  }

 private:
  std::mt19937_64 random_;
};

double Work(const TurnStage& stage) {
  return static_cast<double>(stage.rounds) * (stage.forward_seconds + stage.backward_seconds + stage.weight_seconds);
}

TEST(EstimateWalkTest, NoStageEndsBeforeItsWorkIsDone) {
  RandomTurns random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::vector<TurnStage> turns = random.Next(i % 2 == 0 ? 12 : 190, false);
    const std::vector<double> ends = EndsOfTurns(turns);
    ASSERT_EQ(ends.size(), turns.size());
    for (size_t s = 0; s < turns.size(); ++s) EXPECT_GE(ends[s], Work(turns[s]) * (1 - 1e-12));
  }
}

TEST(EstimateWalkTest, NeitherIsManyRoundsWork) {
  RandomTurns random(4);
  for (int i = 0; i < 500; ++i) {
    const std::vector<TurnStage> turns = random.Next(2000, false);
    const std::vector<double> ends = EndsOfTurns(turns);
    for (size_t s = 0; s < turns.size(); ++s) EXPECT_GE(ends[s], Work(turns[s]) * 0.99) << turns[s].rounds << " rounds";
  }
}

// Of the first stage, which waits for no forward, where passes take the schedule's own time. (A later stage does all its forwards
// in flight before its first backward, so more of them may make it wait for longer; and where stages are unlike, more of them may
// hold up gradients that are received behind them.)
TEST(EstimateWalkTest, NeverFasterWithFewerInFlight) {
  RandomTurns random(5);
  int slower = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<TurnStage> turns = random.Next(40, true);
    if (turns.size() < 2) continue;
    for (TurnStage& turn : turns) {
      turn.forward_seconds = 1;
      turn.weight_seconds = turn.weight_seconds > 0 ? 1 : 0;
      turn.backward_seconds = 2 - turn.weight_seconds;
      turn.border_seconds = turn.border_latency_seconds = 0;
    }
    const double before = Last(turns);
    turns[0].in_flight = std::max(turns[1].in_flight, turns[0].in_flight - 1 - random.Below(3));
    EXPECT_GE(Last(turns), before * (1 - 1e-12));
    slower += Last(turns) > before;
  }
  EXPECT_GT(slower, 50);
}

TEST(EstimateWalkTest, NeverSlowerOverFasterBorders) {
  RandomTurns random(6);
  for (int i = 0; i < 1000; ++i) {
    std::vector<TurnStage> turns = random.Next(40, i % 2 == 0);
    const double before = Last(turns);
    for (TurnStage& turn : turns) {
      turn.border_seconds *= 0.6;
      turn.border_latency_seconds *= 0.5;
    }
    EXPECT_LE(Last(turns), before * (1 + 1e-12));
  }
}

// Up to 192 rounds are counted. Stages in step with each other (one has half of the others' rounds) go on at the pace that they
// have found by then.
TEST(EstimateWalkTest, ManyRoundsGoOnAtThePaceOfTheFirst) {
  RandomTurns random(7);
  int looked_at = 0, late = 0;
  double sum = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<TurnStage> many = random.Next(1000, true);
    for (TurnStage& turn : many) turn.rounds *= 2;
    const size_t slow = i % 2 == 0 ? many.size() : static_cast<size_t>(random.Below(static_cast<int64_t>(many.size())));
    const auto with_rounds = [&](int64_t rounds) {
      std::vector<TurnStage> turns = many;
      for (size_t s = 0; s < turns.size(); ++s) {
        turns[s].border_seconds *= static_cast<double>(rounds) / static_cast<double>(turns[s].rounds);
        turns[s].rounds = s == slow ? rounds / 2 : rounds;
      }
      return Last(turns);
    };
    const double counted = with_rounds(190), pace = (counted - with_rounds(130)) / 60;
    const int64_t rounds = many[0].rounds;
    if (rounds <= 190) continue;
    ++looked_at;
    const double off = std::abs(counted + static_cast<double>(rounds - 190) * pace - with_rounds(rounds)) / with_rounds(rounds);
    sum += off;
    late += off > 0.02;
  }
  EXPECT_GT(looked_at, 200);
  EXPECT_LT(sum / looked_at, 0.0005);
  EXPECT_LE(late, 1) << "one pipeline in hundreds is still not at its pace after so many rounds";
}

// Eight rounds against a thousand: the pace of a few rounds would count the fill of the pipeline again and again.
TEST(EstimateWalkTest, FewRoundsAgainstManyAreFollowedToTheEnd) {
  std::vector<TurnStage> turns = Like(3, 1000, 0.01, 0.02);
  turns[0].rounds = turns[1].rounds = 8;
  for (const size_t s : {0, 1}) turns[s].forward_seconds = 1, turns[s].backward_seconds = 2;
  // The third takes 30 s of its own, beside the others; the bubble is the two stages' before it.
  const double bubble = 2 * (1 + 2) + 125 * 0.03;
  EXPECT_GE(Last(turns), 8 * 3 - 1e-9);
  EXPECT_LE(Last(turns), 30 + bubble + 3 + 1e-9);
}

}  // namespace
}  // namespace motley::planner
