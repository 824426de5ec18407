#include "worker/engine/shared_proof.h"

#include <gtest/gtest.h>

namespace motley::engine {
namespace {

ProofRound Of(const std::vector<ProofRound>& ranks) {
  std::vector<std::vector<double>> by_rank;
  for (const ProofRound& rank : ranks) by_rank.push_back(rank.ToVector());
  return ProofRound::Of(by_rank);
}

TEST(ProofRoundTest, IsOverOnceAllRanksAre) {
  EXPECT_TRUE(Of({{}, {}}).over);
  const ProofRound waits =
      Of({{.unsaved = absl::Seconds(30)}, {.over = false, .bytes = 30, .all_bytes = 100, .left = absl::Seconds(7)}, {}});
  EXPECT_FALSE(waits.over);
  EXPECT_EQ(waits.left, absl::Seconds(7));
  EXPECT_EQ(waits.unsaved, absl::Seconds(30)) << "rank 0's";
  EXPECT_FALSE(waits.touched);
  EXPECT_TRUE(Of({{}, {.touched = true}}).touched);
  EXPECT_TRUE(Of({{}, {.stop = true}}).stop);
}

TEST(ProofRoundTest, ShowsTheRankWithTheLongestWay) {
  const ProofRound round = Of({{.over = false, .bytes = 60, .all_bytes = 100, .left = absl::Seconds(4)},
                               {.over = false, .bytes = 1000, .all_bytes = 2000, .left = absl::Seconds(41)},
                               {}});
  EXPECT_EQ(round.Text(), "comparing the data (50 %, about 41 s left)");
}

TEST(ProofRoundTest, EstimatesAreForPeople) {
  const auto text = [](absl::Duration left) {
    return ProofRound{.over = false, .bytes = 37, .all_bytes = 100, .left = left}.Text();
  };
  EXPECT_EQ(text(absl::ZeroDuration()), "comparing the data (37 %)") << "not known yet";
  EXPECT_EQ(text(absl::InfiniteDuration()), "comparing the data (37 %)") << "it does not move";
  EXPECT_EQ(text(absl::Milliseconds(39'100)), "comparing the data (37 %, about 40 s left)");
  EXPECT_EQ(text(absl::Seconds(191)), "comparing the data (37 %, about 200 s left)");
  EXPECT_EQ(text(absl::Seconds(1741)), "comparing the data (37 %, about 30 min left)");
  EXPECT_EQ(ProofRound().Text(), "comparing the data");
}

// Whoever stops waits for the proof where that saves more than it takes, and never beyond what a stop may take.
TEST(ProofRoundTest, AStopAwaitsWhatIsWorthIt) {
  const auto gives_up = [](bool stop, absl::Duration left, absl::Duration unsaved) {
    return ProofRound{.over = false, .stop = stop, .left = left, .unsaved = unsaved}.is_not_worth_it();
  };
  EXPECT_FALSE(gives_up(false, absl::InfiniteDuration(), absl::ZeroDuration())) << "nobody stops";
  EXPECT_FALSE(gives_up(true, absl::Seconds(30), absl::Minutes(10)));
  EXPECT_TRUE(gives_up(true, absl::Seconds(30), absl::Seconds(20))) << "those steps are made again sooner";
  EXPECT_TRUE(gives_up(true, absl::Seconds(100), absl::Minutes(10))) << "it would be killed before";
  EXPECT_TRUE(gives_up(true, absl::InfiniteDuration(), absl::InfiniteDuration()));
  EXPECT_FALSE(gives_up(true, absl::ZeroDuration(), absl::ZeroDuration())) << "how long is not known yet";
  EXPECT_FALSE((ProofRound{.over = true, .stop = true, .left = absl::Seconds(1)}.is_not_worth_it()));
}

}  // namespace
}  // namespace motley::engine
