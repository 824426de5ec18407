// What no order of pieces does, found by trying all of them on small borders whose links are alike.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/lowering/hand_overs.h"

namespace motley::planner {
namespace {

struct Piece {
  int sender = 0, receiver = 0;
  int32_t sent = 0, received = 0;  // microbatches of the two
  int64_t samples = 0;
};

Border InOrder(const std::vector<Piece>& pieces, const std::vector<size_t>& order) {
  Border border{std::vector<HandOvers>(4), std::vector<double>(4, 1)};
  for (const size_t i : order) {
    const Piece& p = pieces[i];
    border.ranks[static_cast<size_t>(p.sender)].sends.push_back({p.receiver, p.samples, p.sent});
    border.ranks[static_cast<size_t>(p.receiver)].receives.push_back({p.sender, p.samples, p.received});
  }
  return border;
}

bool SendsInTurn(const Border& border) {
  return std::all_of(border.ranks.begin(), border.ranks.end(), [](const HandOvers& rank) {
    return std::is_sorted(rank.sends.begin(), rank.sends.end(),
                          [](const HandOver& a, const HandOver& b) { return a.microbatch < b.microbatch; });
  });
}

struct Least {
  double seconds = std::numeric_limits<double>::infinity();
  double nobody_later = seconds;  // where no microbatch is complete later than in the pieces' own order
};

// Of all orders in which every sender sends one microbatch after the other.
Least OfAllOrders(const std::vector<Piece>& pieces) {
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  const auto by_samples = InOrder(pieces, order).Completions();
  Least least;
  do {
    const Border border = InOrder(pieces, order);
    if (!SendsInTurn(border)) continue;
    least.seconds = std::min(least.seconds, border.OrderSeconds());
    const auto completions = border.Completions();
    const bool later = std::any_of(completions.begin(), completions.end(),
                                   [&](const auto& entry) { return entry.second > by_samples.at(entry.first); });
    if (!later) least.nobody_later = std::min(least.nobody_later, border.OrderSeconds());
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

// Two senders' first microbatches go to one receiver and their second ones to the other, who waits for one of the first.
TEST(HandOverLimitsTest, MicrobatchesThatAreMadeInTurnKeepALaneWaiting) {
  const std::vector<Piece> pieces = {{0, 2, 0, 0, 1}, {1, 2, 0, 0, 1}, {0, 3, 1, 0, 1}, {1, 3, 1, 0, 1}};
  const Border border = InOrder(pieces, {0, 1, 2, 3});
  EXPECT_EQ(border.LaneSeconds(), 2);
  EXPECT_EQ(border.TurnSeconds(), 3);
  EXPECT_EQ(OfAllOrders(pieces).seconds, 3);
}

// Twice: a sender of four samples has three for one receiver and one for the other, who gets four of the second sender. The
// busiest lane is busy without a break only if it begins with those four. Then the first sender's next microbatch is later.
TEST(HandOverLimitsTest, NobodyLaterAndTheBusiestLanesTimeExcludeEachOther) {
  const std::vector<Piece> pieces = {{0, 2, 0, 0, 3}, {0, 3, 0, 0, 1}, {1, 3, 0, 0, 4},
                                     {0, 2, 1, 1, 3}, {0, 3, 1, 1, 1}, {1, 3, 1, 1, 4}};
  EXPECT_EQ(InOrder(pieces, {0, 1, 2, 3, 4, 5}).LaneSeconds(), 10);
  const Least least = OfAllOrders(pieces);
  EXPECT_EQ(least.seconds, 10);
  EXPECT_EQ(least.nobody_later, 13);
}

}  // namespace
}  // namespace motley::planner
