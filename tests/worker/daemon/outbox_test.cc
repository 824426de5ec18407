#include "worker/daemon/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

WorkerReport LogLine(int64_t number, const std::string& text = "") {
  return LogReport{JobId("job"), Epoch(2), "n/gpu0", text, number};
}
WorkerReport Step(int64_t number) {
  StepReport step{JobId("job"), Epoch(2)};
  step.stats.step = number;
  return step;
}
WorkerReport Event(int rank) { return RankReport{JobId("job"), Epoch(2), rank}; }
int RankOf(const std::optional<WorkerReport>& report) { return report ? std::get<RankReport>(*report).rank : -1; }

TEST(Outbox, KeepsOrder) {
  Outbox outbox;
  outbox.Push(Event(1));
  outbox.Push(Event(2));
  const WorkerReport first = *outbox.TryPop();
  EXPECT_EQ(RankOf(first), 1);
  outbox.PutBack(first);
  EXPECT_EQ(RankOf(outbox.TryPop()), 1);
  EXPECT_EQ(RankOf(outbox.TryPop()), 2);
  EXPECT_FALSE(outbox.TryPop().has_value());
}

TEST(Outbox, DropsLogsThenStepsAndNeverEvents) {
  Outbox outbox({.messages = 3});
  outbox.Push(Event(1));
  outbox.Push(Step(1));
  outbox.Push(LogLine(1));
  outbox.Push(Step(2));   // the log goes
  outbox.Push(Event(2));  // the first step goes
  outbox.Push(Event(3));  // the second goes
  outbox.Push(Event(4));  // nothing may go
  EXPECT_EQ(outbox.dropped(), 3u);
  ASSERT_EQ(outbox.size(), 4u);
  for (int rank = 1; rank <= 4; ++rank) EXPECT_EQ(RankOf(outbox.TryPop()), rank);
}

TEST(Outbox, IsBoundedByBytesAndSaysWhatItDropped) {
  Outbox outbox({.bytes = 1 << 20});
  outbox.Push(Event(1));
  for (int line = 0; line < 1000; ++line) outbox.Push(LogLine(line, std::string(8 << 10, 'x')));
  EXPECT_GT(outbox.size(), 100u);
  EXPECT_LT(outbox.size(), 129u);
  EXPECT_EQ(RankOf(outbox.TryPop()), 1);
  EXPECT_EQ(std::get<LogReport>(*outbox.TryPop()).unix_ms, static_cast<int64_t>(outbox.dropped())) << "the oldest go first";
  const std::vector<LogReport> said = outbox.TakeDropped();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].job, JobId("job"));
  EXPECT_EQ(said[0].epoch, Epoch(2));
  EXPECT_THAT(said[0].text, HasSubstr(std::to_string(outbox.dropped()) + " log lines and 0 step reports were dropped"));
  EXPECT_TRUE(outbox.TakeDropped().empty());
}

TEST(Outbox, AWakeEndsTheWait) {
  Outbox outbox;
  outbox.Wake();
  outbox.Wait(absl::InfiniteDuration(), /*for_reports=*/false);
  outbox.Push(Event(1));
  outbox.Wait(absl::InfiniteDuration(), /*for_reports=*/true);
  outbox.Wait(absl::Milliseconds(1), /*for_reports=*/false);
}

}  // namespace
}  // namespace motley::worker
